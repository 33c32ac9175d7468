"""What the tests of figures share: results that are made up."""

from collections.abc import Callable
from typing import Any

import pytest

from explorax.papers import registry, types


def _make_up(
  name: str, results: Callable[[types.Settings], Any], config: Any = None
) -> types.Table:
  """Every task of a figure with what `results` says of its settings."""
  figure = registry.FIGURES[name]
  return types.Table(
    types.CompletedTask(task.name, task.settings, results(task.settings), 1.0, {})
    for task in figure.tasks(figure.config if config is None else config)
  )


@pytest.fixture
def make_up():
  return _make_up


@pytest.fixture
def verdicts():
  """Whether each finding of a figure holds of made-up results."""

  def judge(name, results, config=None) -> list[bool | None]:
    figure = registry.FIGURES[name]
    config = figure.config if config is None else config
    return [f.held for f in figure.judge(config, _make_up(name, results, config))]

  return judge
