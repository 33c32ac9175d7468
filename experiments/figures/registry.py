"""All figures, by name."""

import importlib

from explorax.experiments.figures import (
  ez_adversarial,
  ez_cartpole,
  ez_chain,
  ez_cover,
  ez_first_visits,
  ez_noise,
  ez_obstacles,
  ez_r_max,
  ez_small,
  ez_worlds,
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
  ez_worlds,
  ez_obstacles,
  ez_adversarial,
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


def find(name: str) -> types.Figure:
  """The figure of that name: one of these, or a user's own, `module:NAME`.

  Raises:
    ValueError: if there is none.
  """
  if name in FIGURES:
    return FIGURES[name]
  module, _, attribute = name.partition(":")
  try:
    figure = getattr(importlib.import_module(module), attribute)
  except (ImportError, AttributeError, ValueError) as error:
    raise ValueError(f"there is no figure {name!r} ({error}).") from error
  if not isinstance(figure, types.Figure):
    raise ValueError(f"{name!r} is a {type(figure).__name__}, and no types.Figure.")
  return figure
