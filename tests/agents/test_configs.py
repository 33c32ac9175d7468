"""The combinations that agents' configs refuse, and that every field is read.

The ranges of single fields are in tests/test_ranges.py.
"""

import dataclasses
import functools
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
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.successor import agent as successor_agent
from explorax.agents.successor import config as successor_config
from explorax.agents.targets import categorical, greedy, off_policy
from explorax.environments import specs
from explorax.experiments.presets import r2d2

Q, SUCCESSOR = q_config.QConfig, successor_config.SuccessorConfig
MAKE_AGENT = {Q: q_agent.make_agent, SUCCESSOR: successor_agent.make_agent}
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(3)
)
PICTURES = specs.EnvironmentSpec(
  specs.ImageWithState((6, 5, 1), ("x", "y", "room", "keys")), SPEC.actions
)
BANDIT = exploration.EpsilonGreedy(0.1, of=exploration.Ucb1())
C51 = categorical.CategoricalDoubleQ(num_atoms=5)
Linear = exploration.Linear
R2D2 = functools.partial(dataclasses.replace, r2d2.ATARI)

# A combination that a QConfig refuses, and the field that the sentence names.
REFUSED: list[tuple[dict[str, Any], str]] = [
  ({"replay_capacity": 60}, "replay_capacity"),
  ({"num_explorers": 2}, "num_explorers is 2"),
  ({"beta": 0.1}, "beta is 0.1"),
  ({"bonus": tdu.TDUncertainty()}, "num_members is 1"),
  ({"bonus": qu.QUncertainty()}, "num_members is 1"),
  (
    {"target": off_policy.Retrace(epsilon=None), "exploration": exploration.Greedy()},
    "target.epsilon is None",
  ),
  ({"importance_exponent": Linear(0.0, 1.0, 9)}, "importance_exponent is Linear"),
  ({"explorers_see_reward": False}, "explorers_see_reward"),
  ({"target_prior": "distinct"}, "target_prior is 'distinct'"),
  ({"target": greedy.NStep(n=2)}, "n_step"),
  ({"duelling": True}, "duelling"),
  ({"noisy_torso": True}, "noisy_torso"),
  ({"target": C51, "prior_scale": 1.0}, "prior_scale is 1.0"),
  ({"target": C51, "max_abs_td": 1.0}, "max_abs_td is 1.0"),
  ({"target": C51, "transform_eps": 1e-3}, "transform_eps is 0.001"),
  ({"index_dim": 2, "target": C51}, "index_dim is 2"),
  ({"index_dim": 2, "exploration": BANDIT}, "Ucb1"),
  ({"index_dim": 2, "head_size": 8}, "head_size is 8"),
  ({"index_dim": 2, "noisy_sigma": 0.5}, "noisy_sigma is 0.5"),
  ({"index_dim": 2, "mask_prob": 0.5}, "mask_prob is 0.5"),
  ({"index_dim": 2, "sum_over_members": True}, "sum_over_members is True"),
  ({"noise_variance": 2.0}, "noise_variance is 2.0"),
  (
    {"evaluation_epsilon": 0.1, "evaluation": exploration.Greedy()},
    "evaluation_epsilon is 0.1",
  ),
  ({"evaluation_policy": 1}, "evaluation_policy is 1"),
  ({"evaluation_policy": -2}, "evaluation_policy is -2"),
  ({"mask_per_step": True}, "mask_per_step is True"),
  ({"cross_mixture_ratio": 0.5}, "cross_mixture_ratio is 0.5"),
  ({"num_policies": 2, "num_members": 2}, "num_policies is 2"),
  ({"num_policies": 2, "discount": 1.0}, "discount is 1"),
  ({"min_discount": 0.999}, "min_discount is 0.999"),
  ({"burn_in": 4}, "burn_in is 4"),
]


@pytest.mark.ops
@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_an_impossible_combination_is_refused(changes, field):
  with pytest.raises(ValueError, match=field):
    Q(**changes)


def test_impossible_settings_of_other_parts_are_refused():
  with pytest.raises(ValueError, match="replay_capacity"):
    SUCCESSOR(replay_capacity=60)
  with pytest.raises(ValueError, match=r"NeverGiveUp\.probe"):
    ngu.NeverGiveUp(states="oracle", probe=True)


@pytest.mark.parametrize(
  ("config", "words"),
  [
    (Q(exploration=exploration.Ucb(ddof=1)), "Ucb"),
    (R2D2(replay_capacity=200, min_replay_size=1, batch_size=64), "200"),
    (Q(sequence_period=2), "period is 2"),
  ],
)
def test_a_config_without_an_agent_is_refused(config, words):
  with pytest.raises(ValueError, match=words):
    MAKE_AGENT[type(config)](config, SPEC)


SEQUENCES = [
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
]
# Configs that between them have every rule, target and bonus, and all their branches.
VARIANTS = [
  Q(mask_prob=0.5, num_members=2),
  Q(
    priority_exponent=0.5,
    importance_exponent=0.5,
    exploration=exploration.EpsilonGreedy(Linear(0.1, 0.01, 9)),
  ),
  Q(exploration=exploration.EzGreedy(0.1), bonus=infogain.InfoGain()),
  Q(exploration=exploration.Boltzmann(1.0), bonus=rnd.RND()),
  Q(exploration=exploration.Greedy(), bonus=counts.Counts()),
  Q(exploration=exploration.MajorityVote()),
  Q(exploration=exploration.Ucb(), num_members=2),
  Q(
    exploration=exploration.Thompson(),
    num_members=2,
    num_explorers=1,
    bonus=tdu.TDUncertainty(),
  ),
  Q(
    exploration=exploration.Thompson(),
    num_explorers=1,
    explorers_see_reward=False,
    bonus=td_error.AbsoluteTDError(),
    beta=1.0,
  ),
  Q(
    exploration=exploration.Ucb(of=exploration.Thompson()),
    num_members=2,
    bonus=qu.QUncertainty(),
  ),
  Q(exploration=exploration.Ucb1()),
  Q(index_dim=2, num_members=3),
  Q(
    exploration=exploration.EpsilonGreedy(exploration.Piecewise((1.0, 0.1), (9,))),
    random_steps=3,
    max_abs_td=1.0,
    learning_rate=Linear(1e-3, 1e-4, steps=3, begin=2),
  ),
  Q(target=greedy.NStep(n=2), n_step=3),
  Q(target=off_policy.Retrace(epsilon=None), n_step=3),
  Q(
    target=C51,
    exploration=exploration.Greedy(),
    head_size=3,
    duelling=True,
    noisy_sigma=0.5,
    priority_exponent=0.5,
    importance_exponent=Linear(0.0, 1.0, 9),
  ),
  *SEQUENCES,
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
    spec = PICTURES if config in SEQUENCES else SPEC
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
  config = Q(
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
  agent = q_agent.make_agent(config, SPEC)
  assert agent.replay == types.ReplaySpec(
    capacity=50,
    min_size=7,
    batch_size=5,
    updates_per_step=0.5,
    length=1,
    bootstrap=3,
    priority_exponent=0.4,
    extras=("r_int",),
    first_row_extras=("bootstrap_mask",),
  )
  assert agent.actor_update_period == 4
  assert agent.extras_spec["bootstrap_mask"].shape == (2,)
  assert agent.policy_names == ("policy", "policy")


def test_policies_of_tdu_have_names():
  config = Q(num_members=2, num_explorers=3, bonus=tdu.TDUncertainty(), beta=1.0)
  names = ("exploiter", "exploiter", "explorer", "explorer", "explorer")
  assert q_agent.make_agent(config, SPEC).policy_names == names
