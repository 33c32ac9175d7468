"""What a DQNConfig refuses, and that nothing in it or in its parts goes unread."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import counts, infogain, ngu, qu, rnd, td_error, tdu
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.targets import categorical, greedy, off_policy

C51 = {"target": categorical.CategoricalDoubleQ(num_atoms=5)}
REFUSED = [
  ({"num_members": 0}, "num_members is 0"),
  ({"num_explorers": -1}, "num_explorers is -1"),
  ({"num_explorers": 2}, "there is no bonus for them"),
  ({"explorers_see_reward": False}, "but num_explorers is 0, so there are none"),
  ({"beta": -0.1}, "beta is -0.1"),
  ({"beta": math.nan}, "beta is nan"),
  ({"beta": math.inf}, "beta is inf"),
  ({"beta": 0.1}, "beta is 0.1, but there is no bonus to scale"),
  ({"prior_scale": -1.0}, "prior_scale is -1.0"),
  ({"prior_scale": math.nan}, "prior_scale is nan"),
  ({"prior_scale": math.inf}, "prior_scale is inf"),
  ({"mask_prob": 0.0}, "mask_prob is 0.0"),
  ({"mask_prob": 1.1}, "mask_prob is 1.1"),
  ({"target_prior": "other"}, "target_prior is 'other'; use one of shared, distinct"),
  ({"bonus": tdu.TDUncertainty()}, "TDUncertainty needs at least 2"),
  ({"bonus": qu.QUncertainty()}, "QUncertainty needs at least 2"),
  (
    {
      "target": off_policy.Retrace(epsilon=None),
      "exploration": exploration.Greedy(),
    },
    "has not one ε for all actors",
  ),
  ({"discount": -0.1}, "discount is -0.1"),
  ({"discount": 1.01}, "discount is 1.01"),
  ({"n_step": 0}, "n_step is 0"),
  (
    {"target": greedy.NStep(n=2)},
    "looks along n_step environment steps, and n_step is 1",
  ),
  ({"target_update_period": 0}, "target_update_period is 0"),
  ({"actor_update_period": 0}, "actor_update_period is 0"),
  ({"learning_rate": 0.0}, "learning_rate is 0.0"),
  ({"adam_b2": 1.0}, "adam_b2 is 1.0"),
  ({"adam_b2": -0.1}, "adam_b2 is -0.1"),
  ({"adam_eps": 0.0}, "adam_eps is 0.0"),
  ({"max_gradient_norm": 0.0}, "max_gradient_norm is 0.0"),
  ({"importance_exponent": 1.5}, "importance_exponent is 1.5"),
  ({"importance_exponent": 0.5}, "but replay is uniform"),
  ({"priority_exponent": -0.5}, "priority_exponent is -0.5"),
  ({"batch_size": 0}, "batch_size is 0"),
  ({"batch_size": 20_000}, "batch_size is 20000 with a replay_capacity of 10000"),
  ({"min_replay_size": 0}, "min_replay_size is 0"),
  ({"min_replay_size": 20_000}, "min_replay_size is 20000"),
  ({"torso": "resnet"}, "torso is 'resnet'; use one of auto, mlp, dqn"),
  ({"head_size": -1}, "head_size is -1"),
  ({"duelling": True}, "duelling is on, but head_size is 0"),
  ({"noisy_sigma": -0.1}, "noisy_sigma is -0.1"),
  ({"noisy_sigma": math.inf}, "noisy_sigma is inf"),
  ({"noisy_torso": True}, "noisy_torso is on, but noisy_sigma is 0"),
  ({**C51, "prior_scale": 1.0}, "of distributions, and prior_scale 1.0"),
  ({**C51, "max_abs_td": 1.0}, "max_abs_td is 1.0, but the loss of the target"),
  ({"random_steps": -1}, "random_steps is -1"),
  ({"evaluation_epsilon": 1.1}, "evaluation_epsilon is 1.1"),
  ({"max_abs_reward": 0.0}, "max_abs_reward is 0.0"),
  ({"max_abs_td": -1.0}, "max_abs_td is -1.0"),
  ({"learning_rate": exploration.Linear(1e-3, -1.0, 9)}, "learning_rate is Linear"),
  ({"importance_exponent": exploration.Linear(0.0, 1.0, 9)}, "but replay is uniform"),
  (
    {"priority_exponent": 0.5, "importance_exponent": exploration.Linear(0.0, 1.5, 9)},
    "it must be finite, at least 0 and at most 1",
  ),
  ({"updates_per_step": 0.0}, "updates_per_step is 0.0"),
  ({"updates_per_step": math.inf}, "updates_per_step is inf"),
]


@pytest.mark.ops
@pytest.mark.parametrize("changes, message", REFUSED)
def test_refuses(changes, message):
  with pytest.raises(ValueError) as caught:
    dqn_config.DQNConfig(**changes)
  sentence = str(caught.value)
  assert message in sentence
  assert sentence.endswith(".")


@pytest.mark.ops
@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: infogain.InfoGain(temperature=0.0), "InfoGain.temperature is 0.0"),
    (lambda: rnd.RND(decay=1.0), "RND.decay is 1.0"),
    (lambda: rnd.RND(learning_rate=0.0), "RND.learning_rate is 0.0"),
    (
      lambda: rnd.RND(normalisation="mean"),
      "RND.normalisation is 'mean'; use one of centred, deviation, variance, none",
    ),
    (lambda: counts.Counts(num_buckets=0), "Counts.num_buckets is 0"),
    (
      lambda: categorical.CategoricalDoubleQ(num_atoms=1),
      "CategoricalDoubleQ.num_atoms is 1; a distribution needs at least 2",
    ),
    (
      lambda: categorical.CategoricalDoubleQ(max_abs_value=0.0),
      "CategoricalDoubleQ.max_abs_value is 0.0",
    ),
    (lambda: greedy.NStep(n=0), "NStep.n is 0"),
    (lambda: greedy.PengQ(lambda_=1.5), "PengQ.lambda_ is 1.5"),
    (lambda: greedy.WatkinsQ(lambda_=(0.5, -1.0)), "WatkinsQ.lambda_ is"),
    (lambda: off_policy.TreeBackup(lambda_=-0.1), "TreeBackup.lambda_ is -0.1"),
    (lambda: off_policy.Retrace(epsilon=-0.5), "Retrace.epsilon is -0.5"),
  ],
)
def test_bonuses_and_targets_refuse(make, message):
  with pytest.raises(ValueError, match=message):
    make()


@pytest.mark.parametrize(
  "rule, message",
  [
    (exploration.Ucb(ddof=1), "Ucb needs at least 2 members"),
  ],
)
def test_rules_that_need_members(make_config, make_agent, rule, message):
  with pytest.raises(ValueError, match=message):
    make_agent(make_config(exploration=rule))


def test_a_bonus_that_needs_windows(make_config, make_agent):
  bonus = ngu.NeverGiveUp(hidden_sizes=(3,), embedding_size=2)
  with pytest.raises(ValueError, match="NeverGiveUp trains networks on windows"):
    make_agent(make_config(bonus=bonus))


# Configs that between them have every rule and bonus, and each of their branches.
VARIANTS = [
  {
    "priority_exponent": 0.5,
    "importance_exponent": 0.5,
    "exploration": exploration.EpsilonGreedy(exploration.Linear(0.1, 0.01, 9)),
  },
  {"exploration": exploration.EzGreedy(0.1), "bonus": infogain.InfoGain()},
  {"exploration": exploration.Boltzmann(1.0), "bonus": rnd.RND()},
  {"exploration": exploration.Greedy(), "bonus": counts.Counts()},
  {"exploration": exploration.MajorityVote()},
  {"exploration": exploration.Ucb(), "num_members": 2},
  {
    "exploration": exploration.Thompson(),
    "num_members": 2,
    "num_explorers": 1,
    "bonus": tdu.TDUncertainty(),
  },
  {
    "exploration": exploration.Thompson(),
    "num_explorers": 1,
    "explorers_see_reward": False,
    "bonus": td_error.AbsoluteTDError(),
    "beta": 1.0,
  },
  {
    "exploration": exploration.Ucb(of=exploration.Thompson()),
    "num_members": 2,
    "bonus": qu.QUncertainty(),
  },
  {"exploration": exploration.Ucb1()},
  {
    "exploration": exploration.EpsilonGreedy(exploration.Piecewise((1.0, 0.1), (9,))),
    "random_steps": 3,
    "max_abs_td": 1.0,
    "learning_rate": exploration.Linear(1e-3, 1e-4, steps=3, begin=2),
  },
  {"target": greedy.NStep(n=2), "n_step": 3},
  {"target": off_policy.Retrace(epsilon=None), "n_step": 3},
  {
    **C51,
    "exploration": exploration.Greedy(),
    "head_size": 3,
    "duelling": True,
    "noisy_sigma": 0.5,
    "priority_exponent": 0.5,
    "importance_exponent": exploration.Linear(0.0, 1.0, 9),
  },
]
PARTS = [
  dqn_config.DQNConfig,
  *(type(variant["exploration"]) for variant in VARIANTS if "exploration" in variant),
  *(type(variant["target"]) for variant in VARIANTS if "target" in variant),
  *(type(variant["bonus"]) for variant in VARIANTS if "bonus" in variant),
]


def test_every_field_is_read(make_config, make_agent, make_sample, monkeypatch):
  """Watches the attributes that building, acting and learning ask for.

  What `__post_init__` reads does not count: the configs are made before.
  """
  dqn_agent.make_agent.cache_clear()
  configs = [make_config(**variant) for variant in VARIANTS]
  read: set[tuple[type, str]] = set()

  def watch(cls: type) -> None:
    def getattribute(self, name):
      read.add((cls, name))
      return object.__getattribute__(self, name)

    monkeypatch.setattr(cls, "__getattribute__", getattribute, raising=False)

  for cls in dict.fromkeys(PARTS):
    watch(cls)
  for config in configs:
    sample = make_sample(0, config)
    agent = make_agent(config)
    jax.eval_shape(lambda key, a=agent: _live(a, key, None), jax.random.PRNGKey(0))
    if "r_int" not in agent.replay.extras:
      jax.eval_shape(
        lambda key, a=agent, s=sample: _live(a, key, s), jax.random.PRNGKey(0)
      )
  monkeypatch.undo()
  unread = [
    f"{cls.__name__}.{field.name}"
    for cls in dict.fromkeys(PARTS)
    for field in dataclasses.fields(cls)
    if (cls, field.name) not in read
  ]
  assert not unread


def _live(agent: types.Agent, key: jax.Array, sample: types.Sample | None):
  """One step of acting and one of evaluation, or one update."""
  state = agent.learner.init(key)
  if sample is not None:
    return agent.learner.update(state, sample)
  import dm_env

  params = types.ActorParams(agent.learner.params(state), jnp.int32(0))
  timestep = dm_env.TimeStep(
    jnp.int32(0), jnp.float32(0), jnp.float32(1), np.zeros(2, np.float32)
  )
  return [
    core.select_action(params, timestep, core.init(key, 0, 1))[0]
    for core in (agent.actor(), agent.actor(evaluation=True))
  ]


def test_the_replay_that_a_config_declares(make_config, make_agent):
  config = make_config(
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
  agent = make_agent(config)
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


def test_policies_of_tdu_have_names(make_config, make_agent):
  config = make_config(
    num_members=2, num_explorers=3, bonus=tdu.TDUncertainty(), beta=1.0
  )
  names = ("exploiter", "exploiter", "explorer", "explorer", "explorer")
  assert make_agent(config).policy_names == names
