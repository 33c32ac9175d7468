"""The Acme learner: updates, priorities, variables, and what it saves."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types, updates
from explorax.agents.wiring import learner as learner_lib
from explorax.environments import encodings, specs


class State(NamedTuple):
  w: jax.Array
  num_updates: jax.Array


def adding_core() -> types.LearnerCore:
  """Adds the batch's summed reward to a vector; a NaN leaves it as it is."""

  def init(key):
    return State(jax.random.normal(key, (1000,)), jnp.int32(0))

  def update(state, sample):
    total = jnp.sum(sample.rows["reward"])
    finite = jnp.isfinite(total)
    new = State(state.w + total, state.num_updates + 1)
    new = jax.tree.map(lambda n, o: jnp.where(finite, n, o), new, state)
    metrics = {"loss": total, "finite": finite.astype(jnp.float32)}
    return new, types.LearnerOutput(sample.rows["reward"][:, 0], metrics)

  return types.LearnerCore(init, update, lambda state: {"w": state.w})


def batch(reward: float, size: int = 3) -> tuple[np.ndarray, types.Sample]:
  rows = {"reward": np.full((size, 1), reward, np.float32)}
  ones = np.ones(size, np.float32)
  sample = types.Sample(rows, {}, ones, np.int32(size))
  return np.arange(size, dtype=np.uint64) + 2**63, sample


def make_agent(*, exponent: float = 0.0) -> types.Agent:
  observations = dm_env.specs.Array((), np.float32)
  return types.Agent(
    config=None,
    spec=specs.EnvironmentSpec(observations, dm_env.specs.DiscreteArray(2)),
    encoding=encodings.make(observations),
    extras_spec={},
    actor=lambda evaluation=False: None,
    learner=adding_core(),
    replay=types.ReplaySpec(
      capacity=9,
      min_size=1,
      batch_size=1,
      updates_per_step=1.0,
      priority_exponent=exponent,
    ),
  )


def make_learner(
  rewards: Any, *, exponent: float = 0.0
) -> tuple[learner_lib.Learner, list[tuple[np.ndarray, np.ndarray]]]:
  agent = make_agent(exponent=exponent)
  updated: list[tuple[np.ndarray, np.ndarray]] = []
  learner = learner_lib.Learner(
    agent,
    (batch(reward) for reward in rewards),
    lambda keys, priorities: updated.append((keys, priorities)),
    jax.random.PRNGKey(0),
  )
  return learner, updated


def weights(learner: learner_lib.Learner) -> np.ndarray:
  (params,) = learner.get_variables(["params"])
  return np.array(params["w"])


def test_learns_from_batch_after_batch():
  learner, _ = make_learner([1.0, 2.0])
  assert learner.is_finite() and learner.metrics() == {}
  before = weights(learner)
  learner.step()
  assert learner.metrics() == {"loss": 3.0, "finite": 1.0}
  learner.step()
  np.testing.assert_allclose(weights(learner), before + 9.0, rtol=1e-6)
  assert learner.num_updates == 2


def test_priorities_go_back_with_their_keys():
  learner, updated = make_learner([1.0, 2.0], exponent=0.5)
  learner.step()
  learner.step()
  assert [priorities.tolist() for _, priorities in updated] == [[1.0] * 3, [2.0] * 3]
  for keys, _ in updated:
    np.testing.assert_array_equal(keys, np.arange(3, dtype=np.uint64) + 2**63)


class Targeted(NamedTuple):
  w: jax.Array
  target: jax.Array
  prior: jax.Array
  num_updates: jax.Array


def targeted_core() -> types.LearnerCore:
  """Adds the reward to a vector, which is copied to its target every 3 updates."""

  def init(key):
    w = jax.random.normal(key, (5,))
    return Targeted(w, w, w + 1, jnp.int32(0))

  def update(state, sample):
    total = jnp.sum(sample.rows["reward"] + jnp.mean(state.target))
    finite = jnp.isfinite(total)
    new = state._replace(w=state.w + total, num_updates=state.num_updates + 1)
    return updates.finish(finite, new, state, total, sample.rows["reward"][:, 0], {})

  return types.LearnerCore(
    init, update, lambda s: {"w": s.w}, lambda s: s._replace(target=s.w), 3
  )


def test_the_target_network_is_copied_between_every_third_update_and_the_next():
  agent = dataclasses.replace(make_agent(), learner=targeted_core())
  rewards = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, math.nan]
  learner = learner_lib.Learner(
    agent, map(batch, rewards), lambda *_: None, jax.random.PRNGKey(0)
  )
  state = learner.save()
  w = target = state.w
  for number, reward in enumerate(rewards):
    target = w if number % 3 == 0 else target
    learner.step()
    if np.isfinite(reward):
      w = w + np.float32(3 * (reward + np.mean(target)))
    saved = learner.save()
    np.testing.assert_allclose(saved.w, w, rtol=1e-5)
    np.testing.assert_allclose(saved.target, target, rtol=1e-5)
    np.testing.assert_array_equal(saved.prior, state.prior)


def test_saves_and_restores():
  learner, _ = make_learner(itertools.repeat(1.0))
  learner.step()
  saved = learner.save()
  learner.step()
  after = weights(learner)
  learner.restore(saved, 1)
  learner.step()
  np.testing.assert_array_equal(weights(learner), after)
  assert isinstance(saved.w, np.ndarray)


def test_an_update_that_is_not_finite_is_named():
  learner, updated = make_learner([1.0, math.nan], exponent=0.5)
  learner.step()
  learner.check_finite()
  learner.step()
  assert len(updated) == 1  # A priority that is NaN would poison replay.
  with pytest.raises(FloatingPointError, match="nan in learner update 2"):
    learner.check_finite()
