"""The stored results of each figure give its frozen verdicts."""

import json
import pathlib

import numpy as np
import pytest

from explorax.experiments import config as config_lib
from explorax.experiments import output, presets, session
from explorax.experiments import settings as settings_lib
from explorax.papers import panels, registry, store, types, verdicts

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "figures"


OF_ATARI = [name for name in registry.FIGURES if name.endswith("/atari")]
# Of large figures, perhaps only the quick versions have been computed.
RUN = [
  name
  for name, figure in registry.FIGURES.items()
  if not figure.large or (DOCS / f"{figure.file_name}.json").exists()
]


def stored(figure: types.Figure) -> types.Table:
  """The results of all the figure's tasks in the documentation."""
  results = store.Store(output.RunDirectory(DOCS), f"raw/{figure.file_name}")

  def completed(tasks: list[types.Task]) -> types.Table:
    found = [done for task in tasks if (done := results.read(task)) is not None]
    assert len(found) == len(tasks)  # Nothing would be computed again.
    return types.Table(found)

  table = completed(figure.tasks(figure.config))
  if figure.then is None:
    return table
  return types.Table([*table, *completed(figure.then(figure.config, table))])


def made_up(figure: types.Figure) -> types.Table:
  """Results at random of all tasks of a figure of Atari."""
  rng = np.random.default_rng(0)
  return types.Table(
    types.CompletedTask(
      task.name,
      task.settings,
      {
        "env_steps": np.arange(1, 6)[None] * 1000,
        "scores": rng.normal(1.0, 1.0, size=(1, 5)),
      },
      1.0,
      {},
    )
    for task in figure.tasks(figure.config)
  )


@pytest.mark.parametrize("name", RUN)
def test_stored_results_give_the_frozen_verdicts(name):
  figure = registry.FIGURES[name]
  record = json.loads((DOCS / f"{figure.file_name}.json").read_text())
  config = json.loads(json.dumps(settings_lib.to_json(figure.config)))
  assert record["config"] == config
  findings = figure.judge(figure.config, stored(figure))
  rows = [verdicts.row(name, {**x._asdict(), "verdict": x.verdict}) for x in findings]
  assert rows == [row for row in verdicts.read() if row["figure"] == name]


# One for each way in which figures are computed that no other test here has.
QUICK = (
  *("ez/fig2", "ez/fig3_cartpole", "ez/fig11", "ez/fig15", "ngu/fig7"),
  *("ez/atari", "tdu/proposition2", "ucb/small"),
)


@pytest.mark.parametrize("name", QUICK)
def test_the_quick_version_is_computed_and_judged(name):
  figure = registry.FIGURES[name]
  config = figure.quick
  table = types.Table(
    types.CompletedTask(
      task.name,
      task.settings,
      figure.compute(task.settings),
      1.0,
      {},
    )
    for task in figure.tasks(config)
  )
  assert all(f.claim and f.measured for f in figure.judge(config, table))
  pytest.importorskip("matplotlib")
  assert panels.draw(figure.panels(config), table, figure.height).axes


@pytest.mark.parametrize("name", OF_ATARI)
def test_agents_of_atari_can_be_made(name):
  for agent in registry.FIGURES[name].config.agents:
    preset, settings = settings_lib.split_name(agent)
    found = presets.find(preset)
    run, config = session.resolve(
      config_lib.RunConfig(
        agent=preset, env="atari:Pong/sticky=0.25", settings=settings
      )
    )
    assert run.env == f"atari:Pong/{found.atari_profile},sticky=0.25"
    assert (config == found.config_for(run.env)) == (not settings)


def test_claims_of_atari_are_over_games_at_the_end():
  figure = registry.FIGURES["ez/atari"]
  table = made_up(figure)

  def gap(agent: str) -> float:
    by_seed = {}
    for task in table:
      if task.settings["agent"] == agent:
        score = float(task.results["scores"][0, -1])
        by_seed.setdefault(task.settings["seeds"][0], []).append(1 - min(1.0, score))
    assert {len(games) for games in by_seed.values()} == {57}
    return sum(sum(games) / 57 for games in by_seed.values()) / len(by_seed)

  findings = {x.claim: x for x in figure.judge(figure.config, table)}
  for label, ez, epsilon, seeds in (
    ("Rainbow", "rainbow_ez", "rainbow_epsilon", 5),
    ("R2D2", "r2d2_ez", "r2d2_sarsa_lambda", 3),
  ):
    found = findings[f"{label}, εz-greedy: a smaller human gap than ε-greedy"]
    assert found.measured.startswith(f"{gap(ez):.3g} and {gap(epsilon):.3g},")
    assert found.num_seeds == seeds
