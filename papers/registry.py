"""All figures by name, collected from `FIGURES` in every module of this package."""

import importlib
import pkgutil
import re

from explorax import notation, papers
from explorax.experiments import errors
from explorax.experiments.recording import summary
from explorax.papers import types


def _discover() -> dict[str, types.Figure]:
  found: dict[str, types.Figure] = {}
  for package in pkgutil.iter_modules(papers.__path__, f"{papers.__name__}."):
    if not package.ispkg:
      continue
    path = importlib.import_module(package.name).__path__
    for module in pkgutil.iter_modules(path, f"{package.name}."):
      for figure in getattr(importlib.import_module(module.name), "FIGURES", ()):
        if isinstance(figure, types.Figure):
          found[figure.name] = figure
  return {name: found[name] for name in sorted(found, key=_natural)}


def _natural(name: str) -> list[str | int]:
  """A sorting key that orders ez/fig2 before ez/fig11."""
  return [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", name)]


FIGURES = _discover()


def listing() -> str:
  """All figures, one line each."""
  width = max(map(len, FIGURES))
  lines = []
  for name, figure in FIGURES.items():
    seeds = summary.count(figure.config.num_seeds, "seed")
    lines.append(f"{name:{width}}  {figure.title} ({figure.source}; {seeds})")
  return "\n".join(lines)


def choose(names: str | None) -> list[types.Figure]:
  """The figures for comma-separated names, in the order of the names.

  Args:
    names: names of figures; `ez` for all figures of that paper, or `all`, but for large
      ones; or `module:NAME` for a user's own figure.

  Raises:
    SetUpError: if `names` is empty, or if a figure does not exist.
  """
  if not names:
    raise errors.SetUpError("--figure is missing; --list lists the names.")
  chosen: dict[str, types.Figure] = {}
  for name in names.split(","):
    if ":" in name:
      chosen[name] = _own(name)
      continue
    found = {
      key: figure
      for key, figure in FIGURES.items()
      if name == key or (name in (key.partition("/")[0], "all") and not figure.large)
    }
    if not found:
      raise errors.SetUpError(
        f"there is no figure {name!r}.{notation.nearest(name, list(FIGURES))} "
        "--list lists all figures."
      )
    chosen |= found
  return list(chosen.values())


def _own(name: str) -> types.Figure:
  figure = notation.import_attribute(name, "figure")
  if not isinstance(figure, types.Figure):
    kind = type(figure).__name__
    raise errors.SetUpError(f"{name!r} is a {kind}, not a types.Figure.")
  return figure
