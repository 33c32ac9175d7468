"""The combinations that agents' configs refuse, and that every field is read.

The ranges of single fields are in tests/test_ranges.py.
"""

import dataclasses
from typing import Any

import dm_env
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import (
  counts,
  infogain,
  ngu,
  qu,
  rnd,
  td_error,
  tdu,
)
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.r2d2 import config as r2d2_config
from explorax.agents.successor import agent as successor_agent
from explorax.agents.successor import config as successor_config
from explorax.agents.targets import categorical, greedy, off_policy
from explorax.environments import specs

DQN, R2D2 = dqn_config.DQNConfig, r2d2_config.R2D2Config
SUCCESSOR = successor_config.SuccessorConfig
MAKE_AGENT = {
  DQN: dqn_agent.make_agent,
  R2D2: r2d2_agent.make_agent,
  SUCCESSOR: successor_agent.make_agent,
}
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(3)
)
PICTURES = specs.EnvironmentSpec(
  specs.ImageWithState((6, 5, 1), ("x", "y", "room", "keys")), SPEC.actions
)
C51 = categorical.CategoricalDoubleQ(num_atoms=5)
Linear = exploration.Linear

BOTH = (DQN, R2D2)
# Configs, a combination that they refuse, and the field that the sentence names.
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
  *((cls, {"replay_capacity": 60}, "replay_capacity") for cls in MAKE_AGENT),
  *((cls, {"num_explorers": 2}, "num_explorers is 2") for cls in BOTH),
  *((cls, {"beta": 0.1}, "beta is 0.1") for cls in BOTH),
  *((cls, {"bonus": tdu.TDUncertainty()}, "num_members is 1") for cls in BOTH),
  *((cls, {"bonus": qu.QUncertainty()}, "num_members is 1") for cls in BOTH),
  *(
    (
      cls,
      {"target": off_policy.Retrace(epsilon=None), "exploration": exploration.Greedy()},
      "target.epsilon is None",
    )
    for cls in BOTH
  ),
  *(
    (
      cls,
      {"priority_exponent": 0.0, "importance_exponent": Linear(0.0, 1.0, 9)},
      "importance_exponent is Linear",
    )
    for cls in BOTH
  ),
  (DQN, {"explorers_see_reward": False}, "explorers_see_reward"),
  (DQN, {"target_prior": "distinct"}, "target_prior is 'distinct'"),
  (DQN, {"target": greedy.NStep(n=2)}, "n_step is 1"),
  (DQN, {"duelling": True}, "duelling"),
  (DQN, {"noisy_torso": True}, "noisy_torso"),
  (DQN, {"target": C51, "prior_scale": 1.0}, "prior_scale is 1.0"),
  (DQN, {"target": C51, "max_abs_td": 1.0}, "max_abs_td is 1.0"),
  (DQN, {"index_dim": 2, "target": C51}, "index_dim is 2"),
  (
    DQN,
    {
      "index_dim": 2,
      "exploration": exploration.EpsilonGreedy(0.1, of=exploration.Ucb1()),
    },
    "Ucb1",
  ),
  (DQN, {"index_dim": 2, "shared_torso": True}, "shared_torso is True"),
  (DQN, {"index_dim": 2, "head_size": 8}, "head_size is 8"),
  (DQN, {"index_dim": 2, "noisy_sigma": 0.5}, "noisy_sigma is 0.5"),
  (DQN, {"index_dim": 2, "mask_prob": 0.5}, "mask_prob is 0.5"),
  (
    DQN,
    {"index_dim": 2, "num_explorers": 1, "bonus": rnd.RND()},
    "num_explorers is 1",
  ),
  (
    R2D2,
    {"evaluation_epsilon": 0.1, "evaluation": exploration.Greedy()},
    "evaluation_epsilon is 0.1",
  ),
  (R2D2, {"evaluation_policy": 1}, "evaluation_policy is 1"),
  (R2D2, {"evaluation_policy": -2}, "evaluation_policy is -2"),
  (R2D2, {"mask_per_step": True}, "mask_per_step is True"),
  (R2D2, {"cross_mixture_ratio": 0.5}, "cross_mixture_ratio is 0.5"),
  (R2D2, {"num_policies": 2, "num_members": 2}, "num_policies is 2"),
  (R2D2, {"min_discount": 0.999}, "min_discount is 0.999"),
  (R2D2, {"target": C51}, "target"),
  (R2D2, {"burn_in": 4, "lstm_size": 0}, "burn_in is 4"),
  (ngu.NeverGiveUp, {"states": "oracle", "probe": True}, "NeverGiveUp.probe"),
]


@pytest.mark.ops
@pytest.mark.parametrize(("cls", "changes", "field"), REFUSED)
def test_an_impossible_combination_is_refused(cls, changes, field):
  with pytest.raises(ValueError, match=field):
    cls(**changes)


@pytest.mark.parametrize(
  ("config", "words"),
  [
    (DQN(exploration=exploration.Ucb(ddof=1)), "Ucb"),
    (DQN(bonus=ngu.NeverGiveUp()), "NeverGiveUp"),
    (R2D2(replay_capacity=200, min_replay_size=1, batch_size=64), "200"),
    (R2D2(sequence_period=81), "period is 81"),
  ],
)
def test_a_config_without_an_agent_is_refused(config, words):
  with pytest.raises(ValueError, match=words):
    MAKE_AGENT[type(config)](config, SPEC)


# Configs that between them have every rule, target and bonus, and all their branches.
VARIANTS = [
  DQN(
    priority_exponent=0.5,
    importance_exponent=0.5,
    exploration=exploration.EpsilonGreedy(Linear(0.1, 0.01, 9)),
  ),
  DQN(exploration=exploration.EzGreedy(0.1), bonus=infogain.InfoGain()),
  DQN(exploration=exploration.Boltzmann(1.0), bonus=rnd.RND()),
  DQN(exploration=exploration.Greedy(), bonus=counts.Counts()),
  DQN(exploration=exploration.MajorityVote()),
  DQN(exploration=exploration.Ucb(), num_members=2),
  DQN(
    exploration=exploration.Thompson(),
    num_members=2,
    num_explorers=1,
    bonus=tdu.TDUncertainty(),
  ),
  DQN(
    exploration=exploration.Thompson(),
    num_explorers=1,
    explorers_see_reward=False,
    bonus=td_error.AbsoluteTDError(),
    beta=1.0,
  ),
  DQN(
    exploration=exploration.Ucb(of=exploration.Thompson()),
    num_members=2,
    bonus=qu.QUncertainty(),
  ),
  DQN(exploration=exploration.Ucb1()),
  DQN(index_dim=2, num_members=3),
  DQN(
    exploration=exploration.EpsilonGreedy(exploration.Piecewise((1.0, 0.1), (9,))),
    random_steps=3,
    max_abs_td=1.0,
    learning_rate=Linear(1e-3, 1e-4, steps=3, begin=2),
  ),
  DQN(target=greedy.NStep(n=2), n_step=3),
  DQN(target=off_policy.Retrace(epsilon=None), n_step=3),
  DQN(
    target=C51,
    exploration=exploration.Greedy(),
    head_size=3,
    duelling=True,
    noisy_sigma=0.5,
    priority_exponent=0.5,
    importance_exponent=Linear(0.0, 1.0, 9),
  ),
  R2D2(evaluation_epsilon=0.1, burn_in=2),
  R2D2(
    target=off_policy.Retrace(),
    num_policies=3,
    min_discount=0.8,
    cross_mixture_ratio=0.5,
    beta=0.3,
    bonus=ngu.NeverGiveUp(hidden_sizes=(3,), embedding_size=2, probe=True),
  ),
  R2D2(
    target=off_policy.ExpectedSarsaLambda(),
    num_members=2,
    num_explorers=1,
    bonus=tdu.TDUncertainty(),
    beta=1.0,
    prior_scale=0.5,
    mask_prob=0.5,
    mask_per_step=True,
    evaluation=exploration.Greedy(),
    learning_rate=Linear(1e-3, 0.0, 9),
    optimizer="rmsprop",
  ),
  SUCCESSOR(),
]
PARTS = {
  type(part)
  for config in VARIANTS
  for part in (
    config,
    *(getattr(config, name, None) for name in ("exploration", "target", "bonus")),
  )
  if part is not None
}


def test_every_field_is_read(monkeypatch, trace):
  """Watches the attributes that building, acting and learning ask for.

  What `__post_init__` reads does not count: the configs are made before. States keep
  their shapes and dtypes, as loops within a program require.
  """
  read: set[tuple[type, str]] = set()

  def watch(cls: type) -> None:
    def getattribute(self, name):
      read.add((cls, name))
      return object.__getattribute__(self, name)

    monkeypatch.setattr(cls, "__getattribute__", getattribute, raising=False)

  for cls in PARTS:
    watch(cls)
  for make_agent in MAKE_AGENT.values():
    make_agent.cache_clear()
  for config in VARIANTS:
    spec = PICTURES if isinstance(config, R2D2) else SPEC
    agent = MAKE_AGENT[type(config)](config, spec)
    before, after, *_ = trace(agent)
    assert before == after
  monkeypatch.undo()
  unread = [
    f"{cls.__name__}.{field.name}"
    for cls in PARTS
    for field in dataclasses.fields(cls)
    if (cls, field.name) not in read
  ]
  assert not unread


def test_the_replay_that_a_config_declares():
  config = DQN(
    replay_capacity=50,
    min_replay_size=7,
    batch_size=5,
    updates_per_step=0.5,
    n_step=3,
    priority_exponent=0.4,
    mask_prob=0.5,
    bonus=counts.Counts(),
    actor_update_period=4,
    num_members=2,
  )
  agent = dqn_agent.make_agent(config, SPEC)
  assert agent.replay == types.ReplaySpec(
    capacity=50,
    min_size=7,
    batch_size=5,
    updates_per_step=0.5,
    length=1,
    bootstrap=3,
    priority_exponent=0.4,
    extras=("bootstrap_mask", "r_int"),
  )
  assert agent.actor_update_period == 4
  assert agent.extras_spec["bootstrap_mask"].shape == (2,)
  assert agent.policy_names == ("policy", "policy")


def test_policies_of_tdu_have_names():
  config = DQN(num_members=2, num_explorers=3, bonus=tdu.TDUncertainty(), beta=1.0)
  names = ("exploiter", "exploiter", "explorer", "explorer", "explorer")
  assert dqn_agent.make_agent(config, SPEC).policy_names == names
