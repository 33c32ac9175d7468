"""Settings of figures: their tasks, and what is refused of `--set`."""

import json

import pytest

from explorax.experiments import errors
from explorax.experiments import settings as settings_lib
from explorax.papers import registry


@pytest.mark.parametrize(
  ("name", "settings", "field"),
  [
    ("retrace/fig1", "num_steps=9999", "num_steps"),
    ("retrace/operators", "lambdas=0.5,", "lambdas"),
  ],
)
def test_impossible_settings_are_refused(name, settings, field):
  with pytest.raises((ValueError, errors.SetUpError), match=rf"\b{field}\b"):
    settings_lib.apply(registry.FIGURES[name].config, settings.split())


@pytest.mark.parametrize("name", registry.FIGURES)
@pytest.mark.parametrize("quick", [False, True])
def test_each_seed_of_a_problem_is_in_one_task(name, quick):
  figure = registry.FIGURES[name]
  config = figure.quick if quick else figure.config
  tasks = figure.tasks(config)
  assert len({task.name for task in tasks}) == len(tasks)
  seeds: dict[str, list[int]] = {}
  for task in tasks:
    problem = {k: v for k, v in task.settings.items() if k != "seeds"}
    own = task.settings.get("seeds", range(config.num_seeds))
    seeds.setdefault(json.dumps(problem), []).extend(own)
  # Some problems have another number of seeds, a setting of its own.
  counts = {n for name, n in vars(config).items() if name.endswith("_seeds")}
  for own in seeds.values():
    first = min(own)
    assert sorted(own) == list(range(first, first + len(own))) and len(own) in counts
