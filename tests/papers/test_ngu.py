"""Paper 2's agents in the Disco Maze: their settings."""

import dataclasses

from explorax.agents.bonuses import rnd
from explorax.papers import registry
from explorax.papers.ngu import maze

FIGURE = registry.FIGURES["ngu/fig2"]
VARIANTS = registry.FIGURES["ngu/variants"]


def test_agents_differ_in_what_they_call_novel():
  settings = {**dataclasses.asdict(FIGURE.config), "size": 21}
  configs = {
    name: maze.agent_config({**settings, "agent": name})
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
  base = maze.agent_config(settings)
  of = lambda name: maze.agent_config({**settings, "agent": name})  # noqa: E731
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
