"""The builder's five pieces work together."""

import fakes
import jax
import numpy as np
import pytest

from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import factory

TINY = q_config.QConfig(
  hidden_sizes=(4,), replay_capacity=20, min_replay_size=1, batch_size=2
)


def make_builder() -> tuple[builder_lib.Builder, fakes.FakeEnvironment]:
  environment = fakes.fake()
  agent = q_agent.make_agent(TINY, factory.spec(environment))
  return builder_lib.Builder(agent), environment


@pytest.mark.parametrize(
  "backend", ["memory", pytest.param("reverb", marks=pytest.mark.reverb)]
)
def test_the_pieces_of_the_builder_work_together(backend):
  builder, environment = make_builder()
  replay = builder.make_replay_tables(backend, seed=0)
  try:
    adder = builder.make_adder(replay)
    batches = builder.make_dataset_iterator(replay)
    learner = builder.make_learner(jax.random.PRNGKey(0), batches, replay)
    actor = builder.make_actor(jax.random.PRNGKey(1), learner, [adder])
    evaluator = builder.make_actor(jax.random.PRNGKey(2), learner, evaluation=True)
    for policy in (actor, evaluator):
      timestep = environment.reset()
      policy.observe_first(timestep)
      while not timestep.last():
        action = policy.select_action(timestep.observation)
        timestep = environment.step(action)
        policy.observe(action, timestep)
        policy.update()
    assert adder.num_windows == 5  # The evaluator writes nothing.
    before = jax.device_get(learner.get_variables(["params"]))
    learner.step()
    after = jax.device_get(learner.get_variables(["params"]))
  finally:
    replay.close()
  changed = jax.tree.map(lambda a, b: not np.array_equal(a, b), before, after)
  assert any(jax.tree.leaves(changed))
