"""All figures, by name."""

from explorax.experiments.figures import ngu_mixtures, types

_MODULES = (ngu_mixtures,)

FIGURES: dict[str, types.Figure] = {
  figure.name: figure for module in _MODULES for figure in module.FIGURES
}
