"""Every preset: what it is called, what it is made of, and what its paper says."""

import dataclasses
import re

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import bonuses
from explorax.agents.dqn import config as dqn_config
from explorax.environments import specs
from explorax.experiments import overrides, presets

SPEC = specs.EnvironmentSpec(
  specs.OneHotArray((10, 10), "observation"), dm_env.specs.DiscreteArray(2)
)
NAMES = [
  "dqn",
  "double_dqn",
  "bootstrapped_dqn",
  "bootstrapped_dqn_no_prior",
  "ensemble_voting",
  "ucb",
  "ucb_infogain",
  "tdu",
  "tdu_bandit",
  "qu",
  "q_ucb",
  "dqn_ez",
  "dqn_rnd",
  "dqn_counts",
]


def config(name: str) -> dqn_config.DQNConfig:
  return presets.PRESETS[name].config


def test_names():
  assert list(presets.PRESETS) == NAMES
  assert all(preset.name == name for name, preset in presets.PRESETS.items())


@pytest.mark.parametrize("name", NAMES)
def test_says_where_it_comes_from(name):
  preset = presets.PRESETS[name]
  assert re.search(r"\b(19|20)\d\d\b", preset.paper)
  assert preset.summary and len(preset.summary) < 88 and preset.summary[-1] != "."


@pytest.mark.parametrize("name", NAMES)
def test_makes_an_agent_of_the_config(name):
  preset = presets.PRESETS[name]
  agent = preset.make_agent(preset.config, SPEC)
  assert agent.config == preset.config
  state = jax.eval_shape(agent.learner.init, jax.random.PRNGKey(0))
  weights = agent.learner.params(state)
  assert all(np.prod(leaf.shape) > 0 for leaf in jax.tree.leaves(weights))
  assert len(agent.policy_names) == preset.config.ensemble_size


@pytest.mark.parametrize("name", NAMES)
def test_can_be_written_down_and_changed(name):
  preset = presets.PRESETS[name]
  assert overrides.to_dict(preset.config)["class"] == "DQNConfig"
  changed = overrides.apply(preset.config, ["batch_size=7"])
  assert changed == dataclasses.replace(preset.config, batch_size=7)


def test_no_two_are_the_same():
  configs = [preset.config for preset in presets.PRESETS.values()]
  assert len(set(configs)) == len(configs)


def test_bsuites_defaults():
  """`bsuite.baselines.jax`: what its `default_agent`s are made with."""
  expected = {
    "hidden_sizes": (50, 50),
    "batch_size": 128,
    "discount": 0.99,
    "replay_capacity": 10_000,
    "min_replay_size": 128,
    "updates_per_step": 1.0,
    "target_update_period": 4,
    "learning_rate": 1e-3,
    "target": "q_learning",
    "mask_prob": 1.0,
  }
  for name in ("dqn", "bootstrapped_dqn", "tdu"):
    values = dataclasses.asdict(config(name))
    assert {key: values[key] for key in expected} == expected
  assert config("dqn").exploration == exploration.EpsilonGreedy(epsilon=0.05)
  assert config("bootstrapped_dqn").num_members == 20


def test_tdu_and_its_ablations():
  tdu = config("tdu")
  assert (tdu.num_members, tdu.num_explorers, tdu.prior_scale) == (10, 10, 3.0)
  assert (tdu.beta, tdu.bonus) == (1.0, bonuses.TDUncertainty())
  assert tdu.exploration == exploration.Thompson()
  assert config("tdu_bandit") == dataclasses.replace(
    tdu, exploration=exploration.Ucb1(scale=8.0)
  )
  assert config("qu") == dataclasses.replace(tdu, bonus=bonuses.QUncertainty())
  # β = 0 is Bootstrapped DQN, whose members are as many.
  bootstrapped = config("bootstrapped_dqn")
  assert bootstrapped.ensemble_size == tdu.ensemble_size
  assert config("q_ucb") == dataclasses.replace(
    bootstrapped, exploration=exploration.QUcb(scale=1.0)
  )
  assert config("bootstrapped_dqn_no_prior") == dataclasses.replace(
    bootstrapped, prior_scale=0.0
  )


def test_the_ucb_ensembles():
  for name in ("ensemble_voting", "ucb", "ucb_infogain"):
    ensemble = config(name)
    assert (ensemble.num_members, ensemble.shared_torso) == (10, True)
    assert (ensemble.target, ensemble.num_explorers) == ("double_q", 0)
  assert config("ensemble_voting").exploration == exploration.MajorityVote()
  assert config("ucb").exploration == exploration.Ucb(scale=0.1)
  assert config("ucb_infogain") == dataclasses.replace(
    config("ucb"), bonus=bonuses.InfoGain(temperature=1.0), beta=1.0
  )


def test_the_variants_of_dqn_differ_in_one_thing():
  dqn = config("dqn")
  assert config("double_dqn") == dataclasses.replace(dqn, target="double_q")
  ez = config("dqn_ez").exploration
  assert config("dqn_ez") == dataclasses.replace(dqn, exploration=ez)
  assert (ez.duration, ez.mu, ez.epsilon) == ("zeta", 2.0, dqn.exploration.epsilon)
  for name, bonus in (("dqn_rnd", bonuses.RND()), ("dqn_counts", bonuses.Counts())):
    assert config(name) == dataclasses.replace(dqn, bonus=bonus, beta=0.1)
