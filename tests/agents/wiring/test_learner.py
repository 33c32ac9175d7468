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


def make_agent(*, period: int = 1, exponent: float = 0.0) -> types.Agent:
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
    actor_update_period=period,
  )


def make_learner(
  rewards: Any,
  *,
  period: int = 1,
  exponent: float = 0.0,
  donates: bool | None = None,
) -> tuple[learner_lib.Learner, list[tuple[np.ndarray, np.ndarray]]]:
  agent = make_agent(period=period, exponent=exponent)
  updated: list[tuple[np.ndarray, np.ndarray]] = []
  learner = learner_lib.Learner(
    agent,
    (batch(reward) for reward in rewards),
    lambda keys, priorities: updated.append((keys, priorities)),
    jax.random.PRNGKey(0),
    donates,
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


@pytest.mark.parametrize("donates", [False, True])
@pytest.mark.parametrize("period", [1, 3])
def test_an_actors_weights_stay_valid_until_its_next_fetch(period, donates):
  learner, _ = make_learner(itertools.repeat(1.0), period=period, donates=donates)
  (fetched,) = learner.get_variables(["params"])
  expected = np.array(fetched["w"])
  for _ in range(period - 1):
    learner.step()
    np.testing.assert_array_equal(np.array(fetched["w"]), expected)
  learner.step()
  # The update overwrites a donated state, unless the actor has a copy of it.
  assert fetched["w"].is_deleted() == (donates and period == 1)
  np.testing.assert_allclose(weights(learner), expected + 3.0 * period, rtol=1e-5)


class Targeted(NamedTuple):
  w: jax.Array
  target: jax.Array
  prior: jax.Array
  num_updates: jax.Array


class AddsWithTarget:
  """Adds the reward to a vector, which is copied to its target every 3 updates."""

  def init(self, key):
    w = jax.random.normal(key, (5,))
    return Targeted(w, w, w + 1, jnp.int32(0))

  def update(self, state, sample, copied):
    total = jnp.sum(sample.rows["reward"] + jnp.mean(state.target))
    finite = jnp.isfinite(total)
    new = state._replace(w=state.w + total, num_updates=state.num_updates + 1)
    return updates.finish(
      finite, copied(new), state, total, sample.rows["reward"][:, 0], {}
    )

  def copy(self, state):
    return state._replace(target=state.w)

  def params(self, state):
    return {"w": state.w}


def targeted_core() -> types.LearnerCore:
  return updates.make_core(AddsWithTarget(), 3, ())


def test_the_host_copies_the_target_network_when_the_update_does():
  agent = dataclasses.replace(make_agent(), learner=targeted_core())
  rewards = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, math.nan]
  batches = [batch(reward) for reward in rewards]
  key = jax.random.PRNGKey(0)
  learner = learner_lib.Learner(agent, iter(batches), lambda *_: None, key)
  state, update = jax.jit(agent.learner.init)(key), jax.jit(agent.learner.update)
  for number, (_, sample) in enumerate(batches, start=1):
    learner.step()
    state, _ = update(state, sample)
    np.testing.assert_array_equal(weights(learner), state.w)
    if number % 2:  # Otherwise the next update comes before a copy.
      jax.tree.map(np.testing.assert_array_equal, learner.save(), state)


def test_an_update_that_was_replaced_is_the_one_that_runs():
  core = targeted_core()
  other = core._replace(update=lambda state, sample: core.update(state, sample))
  agent = dataclasses.replace(make_agent(), learner=other)
  batches = [batch(reward) for reward in (1.0, 2.0, 3.0)]
  learner = learner_lib.Learner(
    agent, iter(batches), lambda *_: None, jax.random.PRNGKey(0)
  )
  for _ in batches:
    learner.step()
  saved = learner.save()
  np.testing.assert_array_equal(saved.target, saved.w)


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
