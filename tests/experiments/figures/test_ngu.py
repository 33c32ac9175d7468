"""Paper 2's figure on the Disco Maze."""

import dataclasses

import numpy as np
import pytest

from explorax.agents.bonuses import rnd
from explorax.experiments.figures import registry, types
from explorax.experiments.figures.ngu import maze

FIGURE = registry.FIGURES["ngu/fig2"]


def ending_at(**last):
  """Results whose last evaluations are `last[agent]`, and more for each seed."""

  def results(settings):
    end = last[settings["agent"]] + 0.01 * settings["seeds"][0]
    steps = settings["eval_every"] * np.arange(1, 11)
    return {"coverage": np.linspace(0.3, end, 10)[None], "env_steps": steps[None]}

  return results


def test_claims_hold_where_the_paper_is_right_and_not_elsewhere(verdicts):
  right = ending_at(learned=0.9, random=0.6, rnd=0.6)
  wrong = ending_at(learned=0.5, random=0.6, rnd=0.5)
  assert verdicts("ngu/fig2", right) == [True] * 3
  assert verdicts("ngu/fig2", wrong) == [False] * 3


def test_draws_a_curve_for_each_agent(make_up):
  pytest.importorskip("matplotlib")
  table = make_up("ngu/fig2", ending_at(learned=0.9, random=0.6, rnd=0.5))
  fig = FIGURE.draw(FIGURE.config, table)
  lines = {line.get_label(): line for line in fig.axes[0].lines}
  assert len(lines) == 3
  np.testing.assert_array_equal(
    lines["RND"].get_xdata(), np.arange(6_000, 60_001, 6_000)
  )


def test_agents_differ_in_what_they_call_novel():
  settings = {**dataclasses.asdict(FIGURE.config), "size": 21}
  configs = {
    name: maze._agent_config({**settings, "agent": name})
    for name in FIGURE.config.agents
  }
  assert configs["learned"].bonus.states == "learned"
  assert configs["random"] == dataclasses.replace(
    configs["learned"],
    bonus=dataclasses.replace(configs["learned"].bonus, states="random"),
  )
  assert isinstance(configs["rnd"].bonus, rnd.RND)
  assert {c.sequence_length for c in configs.values()} == {10}


@pytest.mark.parametrize(
  ("change", "words"),
  [
    ({"size": 4}, "it must be odd"),
    ({"size": 3}, "at least 5"),
    ({"agents": ("dqn",)}, "choose from learned"),
    ({"agents": ("rnd", "rnd")}, "each of them once"),
    ({"eval_every": 0}, "eval_every has 0"),
    ({"num_steps": 10}, "lower eval_every"),
    ({"sequence_period": 11}, "at most the length"),
  ],
)
def test_what_cannot_be_is_refused(change, words):
  with pytest.raises(ValueError, match=words):
    dataclasses.replace(FIGURE.config, **change)


@pytest.mark.slow
def test_a_smoke_version_runs():
  config = dataclasses.replace(FIGURE.quick, agents=("learned",))
  (task,) = FIGURE.tasks(config)
  shares = []
  results = FIGURE.run(task.settings, types.Tick(shares.append))
  assert results["env_steps"].tolist() == [
    [200, 300]
  ]  # At the first report thereafter.
  # A maze of size 5 has seven positions that can be reached.
  positions = results["training_coverage"] * 7
  np.testing.assert_allclose(positions, np.round(positions), atol=1e-5)
  assert ((results["coverage"] > 0) & (results["coverage"] <= 1)).all()
  assert shares == sorted(shares) and 0.5 < shares[-1] <= 1
  table = types.Table([types.Done(task.name, task.settings, results, 1.0, {})])
  assert [finding.held for finding in FIGURE.judge(config, table)] == [False]
