"""All figures, by name."""

from explorax.experiments.figures import (
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
