"""What configs of agents and of their parts refuse, and that every field is read."""

import dataclasses
import math
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
  pseudo_counts,
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

ALL = [  # Refused by the config of every agent.
  ({"torso": "resnet"}, "torso is 'resnet'; it must be one of auto, mlp, dqn"),
  ({"batch_size": 0}, "batch_size is 0"),
  ({"min_replay_size": 0}, "min_replay_size is 0"),
  ({"replay_capacity": 60}, "with a replay_capacity of 60"),
  ({"target_update_period": 0}, "target_update_period is 0"),
  ({"actor_update_period": 0}, "actor_update_period is 0"),
  ({"updates_per_step": 0.0}, "updates_per_step is 0.0"),
  ({"updates_per_step": math.inf}, "updates_per_step is inf"),
  ({"discount": -0.1}, "discount is -0.1"),
  ({"discount": 1.01}, "discount is 1.01"),
  ({"evaluation_epsilon": 1.1}, "evaluation_epsilon is 1.1"),
  ({"learning_rate": 0.0}, "learning_rate is 0.0"),
  ({"learning_rate": Linear(1e-3, -1.0, 9)}, "learning_rate is Linear"),
]
ENGINES = [  # Refused by both engines.
  ({"num_members": 0}, "num_members is 0"),
  ({"num_explorers": -1}, "num_explorers is -1"),
  ({"num_explorers": 2}, "num_explorers is 2, but there is no bonus"),
  ({"head_size": -1}, "head_size is -1"),
  ({"beta": -0.1}, "beta is -0.1"),
  ({"beta": math.nan}, "beta is nan"),
  ({"beta": math.inf}, "beta is inf"),
  ({"beta": 0.1}, "beta is 0.1, but there is no bonus to scale"),
  ({"beta": Linear(0.1, -0.1, 9)}, "beta is Linear"),
  ({"prior_scale": -1.0}, "prior_scale is -1.0"),
  ({"prior_scale": math.nan}, "prior_scale is nan"),
  ({"mask_prob": 0.0}, "mask_prob is 0.0"),
  ({"mask_prob": 1.1}, "mask_prob is 1.1"),
  ({"bonus": tdu.TDUncertainty()}, "TDUncertainty needs at least 2"),
  ({"bonus": qu.QUncertainty()}, "QUncertainty needs at least 2"),
  (
    {"target": off_policy.Retrace(epsilon=None), "exploration": exploration.Greedy()},
    "does not have one epsilon for all actors",
  ),
  ({"max_gradient_norm": 0.0}, "max_gradient_norm is 0.0"),
  ({"max_abs_reward": 0.0}, "max_abs_reward is 0.0"),
  ({"max_abs_td": -1.0}, "max_abs_td is -1.0"),
  ({"priority_exponent": -0.5}, "priority_exponent is -0.5"),
  ({"priority_exponent": 1, "importance_exponent": -1}, "importance_exponent is -1"),
  (
    {"priority_exponent": 0.5, "importance_exponent": Linear(0.0, 1.5, 9)},
    "it must be finite, at least 0 and at most 1",
  ),
  (
    {"priority_exponent": 0.0, "importance_exponent": Linear(0.0, 1.0, 9)},
    "but replay is uniform",
  ),
]
OWN: list[tuple[Any, dict[str, Any], str]] = [
  (
    DQN,
    {"explorers_see_reward": False},
    "num_explorers is 0, so there are no explorers",
  ),
  (DQN, {"target_prior": "other"}, "it must be one of shared, distinct"),
  (DQN, {"target_prior": "distinct"}, "but prior_scale is 0, so there are no priors"),
  (DQN, {"n_step": 0}, "n_step is 0"),
  (DQN, {"target": greedy.NStep(n=2)}, "but n_step is 1"),
  (DQN, {"adam_b2": 1.0}, "adam_b2 is 1.0"),
  (DQN, {"adam_b2": -0.1}, "adam_b2 is -0.1"),
  (DQN, {"adam_eps": 0.0}, "adam_eps is 0.0"),
  (DQN, {"duelling": True}, "duelling is on, but head_size is 0"),
  (DQN, {"noisy_sigma": -0.1}, "noisy_sigma is -0.1"),
  (DQN, {"noisy_torso": True}, "noisy_torso is on, but noisy_sigma is 0"),
  (DQN, {"target": C51, "prior_scale": 1.0}, "distributional, but prior_scale is 1.0"),
  (DQN, {"target": C51, "max_abs_td": 1.0}, "max_abs_td is 1.0, but the loss"),
  (DQN, {"random_steps": -1}, "random_steps is -1"),
  (DQN, {"index_dim": -1}, "index_dim is -1"),
  (DQN, {"index_dim": 2, "target": C51}, "is distributional, and an epinet has values"),
  (
    DQN,
    {
      "index_dim": 2,
      "exploration": exploration.EpsilonGreedy(0.1, of=exploration.Ucb1()),
    },
    "Ucb1 compares members over episodes",
  ),
  (DQN, {"index_dim": 2, "shared_torso": True}, "leave shared_torso at False"),
  (DQN, {"index_dim": 2, "head_size": 8}, "leave head_size at 0"),
  (DQN, {"index_dim": 2, "noisy_sigma": 0.5}, "leave noisy_sigma at 0.0"),
  (DQN, {"index_dim": 2, "mask_prob": 0.5}, "leave mask_prob at 1.0"),
  (
    DQN,
    {"index_dim": 2, "num_explorers": 1, "bonus": rnd.RND()},
    "leave num_explorers at 0, or set index_dim to 0",
  ),
  (R2D2, {"lstm_size": -1}, "lstm_size is -1"),
  (R2D2, {"prior_width": 0.0}, "prior_width is 0.0"),
  (R2D2, {"prior_width": 1.5}, "prior_width is 1.5"),
  (
    R2D2,
    {"evaluation_epsilon": 0.1, "evaluation": exploration.Greedy()},
    "the evaluation has its own rule",
  ),
  (R2D2, {"mask_per_step": True}, "mask_per_step is True, but mask_prob is 1"),
  (R2D2, {"num_policies": 0}, "num_policies is 0"),
  (R2D2, {"cross_mixture_ratio": 1.5}, "cross_mixture_ratio is 1.5"),
  (R2D2, {"cross_mixture_ratio": 0.5}, "with num_policies 1 there is no other"),
  (R2D2, {"num_policies": 2, "num_members": 2}, "is 2 with an ensemble of 2"),
  (R2D2, {"discount": 1.0}, "discount is 1.0"),
  (R2D2, {"min_discount": -0.5}, "min_discount is -0.5"),
  (R2D2, {"min_discount": 0.999}, "min_discount is 0.999, above the discount"),
  (R2D2, {"reward_scale": -1.0}, "reward_scale is -1.0"),
  (R2D2, {"target": C51}, "of distributions"),
  (R2D2, {"transform_eps": 0.0}, "transform_eps is 0.0"),
  (R2D2, {"optimizer": "sgd"}, "optimizer is 'sgd'"),
  (R2D2, {"optimizer_eps": 0.0}, "optimizer_eps is 0.0"),
  (R2D2, {"sequence_length": 1}, "sequence_length is 1; it must be at least 2"),
  (R2D2, {"burn_in": -1}, "burn_in is -1"),
  (R2D2, {"burn_in": 4, "lstm_size": 0}, "without an LSTM there is no state to warm"),
  (R2D2, {"sequence_period": 0}, "sequence_period is 0"),
  (R2D2, {"priority_eta": 1.5}, "priority_eta is 1.5"),
  (SUCCESSOR, {"feature_size": 0}, "feature_size is 0"),
  (SUCCESSOR, {"prior_variance": 0.0}, "prior_variance is 0.0"),
  (SUCCESSOR, {"likelihood_variance": math.inf}, "likelihood_variance is inf"),
  (SUCCESSOR, {"regression_decay": 1.0}, "regression_decay is 1.0"),
  (infogain.InfoGain, {"temperature": 0.0}, "InfoGain.temperature is 0.0"),
  (rnd.RND, {"decay": 1.0}, "RND.decay is 1.0"),
  (rnd.RND, {"learning_rate": 0.0}, "RND.learning_rate is 0.0"),
  (rnd.RND, {"normalisation": "mean"}, "one of centred, deviation, variance, none"),
  (counts.Counts, {"num_buckets": 0}, "Counts.num_buckets is 0"),
  (pseudo_counts.PseudoCounts, {"side": 0}, "PseudoCounts.side is 0"),
  (pseudo_counts.PseudoCounts, {"num_levels": 1}, "PseudoCounts.num_levels is 1"),
  (pseudo_counts.PseudoCounts, {"depth": 5}, "depth is 5; it must be in [0, 4]"),
  (pseudo_counts.PseudoCounts, {"num_buckets": 0}, "PseudoCounts.num_buckets is 0"),
  (ngu.NeverGiveUp, {"states": "true"}, "it must be one of learned, random, oracle"),
  (ngu.NeverGiveUp, {"states": "oracle", "probe": True}, "states learned or random"),
  (ngu.NeverGiveUp, {"embedding_learning_rate": 0.0}, "embedding_learning_rate is 0.0"),
  (ngu.NeverGiveUp, {"rnd_learning_rate": math.inf}, "rnd_learning_rate is inf"),
  (ngu.NeverGiveUp, {"probe_learning_rate": -1.0}, "probe_learning_rate is -1.0"),
  (ngu.NeverGiveUp, {"kernel_epsilon": 0.0}, "kernel_epsilon is 0.0"),
  (ngu.NeverGiveUp, {"pseudo_count": math.nan}, "pseudo_count is nan"),
  (ngu.NeverGiveUp, {"max_similarity": 0.0}, "max_similarity is 0.0"),
  (ngu.NeverGiveUp, {"embedding_l2": -1e-5}, "embedding_l2 is -1e-05"),
  (ngu.NeverGiveUp, {"cluster_distance": math.inf}, "cluster_distance is inf"),
  (ngu.NeverGiveUp, {"episodes_per_memory": 0}, "episodes_per_memory is 0"),
  (ngu.NeverGiveUp, {"num_neighbors": 0}, "num_neighbors is 0"),
  (ngu.NeverGiveUp, {"memory_capacity": 0}, "memory_capacity is 0"),
  (ngu.NeverGiveUp, {"num_frames": 1}, "num_frames is 1; it must be at least 2"),
  (ngu.NeverGiveUp, {"max_modulation": 0.5}, "max_modulation is 0.5"),
  (ngu.NeverGiveUp, {"max_modulation": math.nan}, "max_modulation is nan"),
  (categorical.CategoricalDoubleQ, {"num_atoms": 1}, "num_atoms is 1"),
  (categorical.CategoricalDoubleQ, {"max_abs_value": 0.0}, "max_abs_value is 0.0"),
  (greedy.NStep, {"n": 0}, "NStep.n is 0"),
  (greedy.PengQ, {"lambda_": 1.5}, "PengQ.lambda_ is 1.5"),
  (greedy.WatkinsQ, {"lambda_": (0.5, -1.0)}, "WatkinsQ.lambda_ has -1.0"),
  (off_policy.TreeBackup, {"lambda_": -0.1}, "TreeBackup.lambda_ is -0.1"),
  (off_policy.Retrace, {"epsilon": -0.5}, "Retrace.epsilon is -0.5"),
]
REFUSED = [
  *((cls, *case) for cls in (DQN, R2D2, SUCCESSOR) for case in ALL),
  *((cls, *case) for cls in (DQN, R2D2) for case in ENGINES),
  *OWN,
]


@pytest.mark.ops
@pytest.mark.parametrize(("cls", "changes", "message"), REFUSED)
def test_refuses(cls, changes, message):
  with pytest.raises(ValueError) as caught:
    cls(**changes)
  sentence = str(caught.value)
  assert message in sentence
  assert sentence.endswith(".")


@pytest.mark.parametrize(
  ("config", "message"),
  [
    (DQN(exploration=exploration.Ucb(ddof=1)), "Ucb needs at least 2 members"),
    (DQN(bonus=ngu.NeverGiveUp()), "NeverGiveUp trains networks on windows"),
    (R2D2(replay_capacity=200, min_replay_size=1, batch_size=64), "fewer windows"),
    (R2D2(sequence_period=81), "period is 81, beyond its length of 80"),
  ],
)
def test_refuses_to_make_an_agent(config, message):
  with pytest.raises(ValueError, match=message):
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
