"""What an R2D2Config refuses, and that nothing in it goes unread."""

import dataclasses
import math

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu, tdu
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.r2d2 import config as r2d2_config
from explorax.agents.targets import categorical, off_policy

REFUSED = [
  ({"lstm_size": -1}, "lstm_size is -1"),
  ({"head_size": -1}, "head_size -1"),
  ({"prior_width": 0.0}, "prior_width is 0.0"),
  ({"prior_width": 1.5}, "prior_width is 1.5"),
  ({"evaluation_epsilon": 1.5}, "evaluation_epsilon is 1.5"),
  (
    {"evaluation_epsilon": 0.1, "evaluation": exploration.Greedy()},
    "the evaluation has a rule of its own",
  ),
  ({"num_members": 0}, "num_members is 0"),
  ({"num_explorers": -1}, "num_explorers is -1"),
  ({"num_explorers": 2}, "there is no bonus for them"),
  ({"beta": -0.1}, "beta is -0.1"),
  ({"beta": math.nan}, "beta is nan"),
  ({"beta": 0.1}, "beta is 0.1, but there is no bonus to scale"),
  ({"prior_scale": -1.0}, "prior_scale is -1.0"),
  ({"mask_prob": 0.0}, "mask_prob is 0.0"),
  ({"mask_per_step": True}, "mask_per_step is True, but mask_prob is 1"),
  ({"bonus": tdu.TDUncertainty()}, "TDUncertainty needs at least 2"),
  ({"num_policies": 0}, "num_policies is 0"),
  ({"cross_mixture_ratio": 1.5}, "cross_mixture_ratio is 1.5"),
  (
    {"cross_mixture_ratio": 0.5},
    "cross_mixture_ratio is 0.5, but with num_policies 1 there is no other policy",
  ),
  ({"num_policies": 2, "num_members": 2}, "num_policies is 2 with an ensemble of 2"),
  ({"discount": 1.0}, "discount is 1.0"),
  ({"min_discount": -0.5}, "min_discount is -0.5"),
  ({"min_discount": 0.999}, "min_discount is 0.999, above the discount of 0.997"),
  ({"reward_scale": -1.0}, "reward_scale is -1.0"),
  ({"target": categorical.CategoricalDoubleQ()}, "of distributions"),
  ({"target": off_policy.Retrace(epsilon=None)}, "has not one ε for all actors"),
  ({"transform_eps": 0.0}, "transform_eps is 0.0"),
  ({"max_abs_reward": 0.0}, "max_abs_reward is 0.0"),
  ({"max_abs_td": -1.0}, "max_abs_td is -1.0"),
  ({"max_gradient_norm": math.inf}, "max_gradient_norm is inf"),
  ({"target_update_period": 0}, "target_update_period is 0"),
  ({"optimizer": "sgd"}, "optimizer is 'sgd'"),
  ({"learning_rate": 0.0}, "learning_rate is 0.0"),
  ({"optimizer_eps": 0.0}, "optimizer_eps is 0.0"),
  ({"updates_per_step": math.inf}, "updates_per_step is inf"),
  ({"sequence_length": 1}, "sequence_length is 1; a sequence needs at least 2 rows"),
  ({"burn_in": -1}, "burn_in is -1"),
  ({"burn_in": 4, "lstm_size": 0}, "without an LSTM there is no state to warm up"),
  ({"sequence_period": 0}, "sequence_period is 0"),
  ({"sequence_period": 81}, "sequence_period is 81 and sequence_length 80"),
  ({"actor_update_period": 0}, "actor_update_period is 0"),
  ({"priority_eta": 1.5}, "priority_eta is 1.5"),
  ({"importance_exponent": -0.5}, "importance_exponent is -0.5"),
  ({"priority_exponent": 0.0}, "but replay is uniform"),
]


@pytest.mark.ops
@pytest.mark.parametrize("changes, message", REFUSED)
def test_refuses(changes, message):
  with pytest.raises(ValueError) as caught:
    r2d2_config.R2D2Config(**changes)
  sentence = str(caught.value)
  assert message in sentence
  assert sentence.endswith(".")


@pytest.mark.parametrize(
  "changes, message",
  [
    ({"batch_size": 0}, "batch_size is 0"),
    ({"replay_capacity": 4}, "a replay capacity of 4 environment steps holds fewer"),
    ({"min_replay_size": 41}, "min_size is 41 environment steps"),
    ({"priority_exponent": -1.0}, "priority_exponent is -1.0"),
  ],
)
def test_replay_refuses(make_config, make_agent, changes, message):
  with pytest.raises(ValueError, match=message):
    make_agent(make_config(**changes))


# Configs that between them have each branch.
VARIANTS = [
  {"evaluation_epsilon": 0.1, "burn_in": 2},
  {
    "target": off_policy.Retrace(),
    "num_policies": 3,
    "min_discount": 0.8,
    "cross_mixture_ratio": 0.5,
    "beta": 0.3,
    "bonus": ngu.NeverGiveUp(hidden_sizes=(3,), embedding_size=2, rnd_size=2),
  },
  {
    "target": off_policy.ExpectedSarsaLambda(),
    "num_members": 2,
    "num_explorers": 1,
    "bonus": tdu.TDUncertainty(),
    "beta": 1.0,
    "prior_scale": 0.5,
    "mask_prob": 0.5,
    "mask_per_step": True,
    "evaluation": exploration.Greedy(),
    "learning_rate": exploration.Linear(1e-3, 0.0, 9),
    "optimizer": "rmsprop",
  },
]


def test_every_field_is_read(make_config, make_agent, make_sample, monkeypatch):
  """Watches what building, acting and learning ask for."""
  r2d2_agent.make_agent.cache_clear()
  configs = [make_config(**variant) for variant in VARIANTS]
  read: set[str] = set()

  def getattribute(self, name):
    read.add(name)
    return object.__getattribute__(self, name)

  monkeypatch.setattr(
    r2d2_config.R2D2Config, "__getattribute__", getattribute, raising=False
  )
  for config in configs:
    agent = make_agent(config)
    sample = make_sample(0, agent)

    def live(key, agent=agent, sample=sample):
      state, _ = agent.learner.update(agent.learner.init(key), sample)
      params = types.ActorParams(agent.learner.params(state), np.int32(0))
      for evaluation in (False, True):
        core = agent.actor(evaluation=evaluation)
        actor_state = core.init(key, 0, 1)
        timestep = dm_env.restart(np.zeros(2, np.float32))
        timestep = timestep._replace(reward=np.float32(0), discount=np.float32(1))
        core.select_action(params, timestep, actor_state)

    jax.eval_shape(live, jax.random.PRNGKey(0))
  monkeypatch.undo()
  fields = {field.name for field in dataclasses.fields(r2d2_config.R2D2Config)}
  assert fields <= read, fields - read
