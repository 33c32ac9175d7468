"""All figures, by name."""

from explorax.experiments.figures import (
  ez_cartpole,
  ez_chain,
  ez_cover,
  ez_first_visits,
  ez_noise,
  ez_r_max,
  ez_small,
  ngu_maze,
  ngu_mixtures,
  retrace_operators,
  tdu_binary_tree,
  tdu_deep_sea,
  tdu_scales,
  types,
  ucb_small,
)

_MODULES = (
  ez_first_visits,
  ez_chain,
  ez_small,
  ez_cartpole,
  ez_noise,
  ez_cover,
  ez_r_max,
  ngu_maze,
  ngu_mixtures,
  retrace_operators,
  tdu_deep_sea,
  tdu_scales,
  tdu_binary_tree,
  ucb_small,
)

FIGURES: dict[str, types.Figure] = {
  figure.name: figure for module in _MODULES for figure in module.FIGURES
}
