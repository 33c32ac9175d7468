"""Paper 2's figure on the Disco Maze."""

import dataclasses

import numpy as np
import pytest

from explorax.agents.bonuses import rnd
from explorax.experiments import presets
from explorax.papers import registry, types
from explorax.papers.ngu import maze

FIGURE = registry.FIGURES["ngu/fig2"]
VARIANTS = registry.FIGURES["ngu/variants"]


def ending_at(**last):
  """Results whose last evaluations are `last[agent]`, and more for each seed."""

  def results(settings):
    end = last[settings["agent"]] + 0.01 * settings["seeds"][0]
    steps = settings["eval_every"] * np.arange(1, 11)
    return {"coverage": np.linspace(0.3, end, 10)[None], "env_steps": steps[None]}

  return results


def test_claims_hold_where_the_paper_is_right_and_not_elsewhere(verdicts):
  right = ending_at(learned=0.9, random=0.6, rnd=0.6)
  wrong = ending_at(learned=0.5, random=0.6, rnd=0.7)
  alike = ending_at(learned=0.79, random=0.79, rnd=0.79)
  assert verdicts("ngu/fig2", right) == [True] * 3
  assert verdicts("ngu/fig2", wrong) == [False, False, None]
  assert verdicts("ngu/fig2", alike) == [None] * 3


def test_draws_a_curve_for_each_agent(make_up):
  pytest.importorskip("matplotlib")
  table = make_up("ngu/fig2", ending_at(learned=0.9, random=0.6, rnd=0.5))
  fig = FIGURE.draw(FIGURE.config, table)
  lines = {line.get_label(): line for line in fig.axes[0].lines}
  assert len(lines) == 3
  np.testing.assert_array_equal(
    lines["RND"].get_xdata(), np.arange(10_000, 100_001, 10_000)
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
  assert {c.sequence_length for c in configs.values()} == {5}


def test_variants_change_what_they_say_and_nothing_else():
  settings = {**dataclasses.asdict(VARIANTS.config), "agent": "learned"}
  base = maze._agent_config(settings)
  of = lambda name: maze._agent_config({**settings, "agent": name})  # noqa: E731
  eight = {"num_policies": 8, "discount": 0.997, "min_discount": 0.99}
  whole = {
    "n8": eight,
    "n8_cmr": {**eight, "cross_mixture_ratio": 0.5},
    "beta02": {"beta": 0.2},
  }
  bonus = {
    "no_rnd": {"rnd": False},
    "k5": {"num_neighbors": 5},
    "k30": {"num_neighbors": 30},
    "l10": {"max_modulation": 10},
    "three": {"episodes_per_memory": 3},
  }
  assert {"learned", *whole, *bonus} == set(VARIANTS.config.agents)
  for name, changes in whole.items():
    assert of(name) == dataclasses.replace(base, **changes)
  for name, changes in bonus.items():
    changed = dataclasses.replace(base.bonus, **changes)
    assert of(name) == dataclasses.replace(base, bonus=changed)
  assert base.evaluation_policy == -1
  # Three episodes of at most 98 steps, and the observation before the first.
  assert base.bonus.memory_capacity == 3 * 99
  assert (base.replay_capacity, base.bonus.num_neighbors) == (40_000, 10)


def test_claims_on_variants(verdicts):
  names = VARIANTS.config.agents
  alike = dict.fromkeys(names, 0.5)
  right = {**alike, "learned": 0.6, "l10": 0.7, "n8": 0.7, "n8_cmr": 0.6}
  wrong = {**dict.fromkeys(names, 0.6), "learned": 0.5, "l10": 0.4, "n8": 0.4}
  assert verdicts("ngu/variants", ending_at(**right)) == [True] * 8
  assert verdicts("ngu/variants", ending_at(**wrong)) == [False] * 8
  assert verdicts("ngu/variants", ending_at(**alike)) == [None] * 8


def test_draws_a_row_for_each_variant(make_up):
  pytest.importorskip("matplotlib")
  last = {name: 0.1 * i for i, name in enumerate(VARIANTS.config.agents)}
  fig = VARIANTS.draw(VARIANTS.config, make_up("ngu/variants", ending_at(**last)))
  (axes,) = fig.axes
  labels = [label.get_text() for label in axes.get_yticklabels()]
  assert labels[0] == "NGU, learned states" and len(labels) == 9
  means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
  np.testing.assert_allclose(means, 0.01 + 0.1 * np.arange(9), atol=1e-6)


def test_an_agent_is_evaluated(monkeypatch):
  """For real, with an agent that is quickly compiled."""
  config = dataclasses.replace(FIGURE.quick, agents=("learned",))
  (task,) = FIGURE.tasks(config)
  monkeypatch.setitem(maze._AGENTS, "learned", ("DQN", "dqn", ()))
  dqn = presets.PRESETS["dqn"].config
  monkeypatch.setattr(maze, "_agent_config", lambda settings: dqn)
  shares = []
  results = FIGURE.run(task.settings, types.TaskContext(shares.append))
  # An evaluation is made at the first report after its step.
  first, last = results["env_steps"][0]
  assert 150 <= first < last == 300
  # A maze of size 5 has seven positions that can be reached.
  positions = results["training_coverage"] * 7
  np.testing.assert_allclose(positions, np.round(positions), atol=1e-5)
  assert ((results["coverage"] > 0) & (results["coverage"] <= 1)).all()
  assert shares == sorted(shares) and 0.5 < shares[-1] <= 1
  table = types.Table([types.CompletedTask(task.name, task.settings, results, 1.0, {})])
  assert len(FIGURE.judge(config, table)) == 1
