"""Environments of other JAX libraries: stand-ins of each protocol.

Each stand-in is one walk: action 1 moves one to the right, action 0 stays, and position
3 ends the task with a reward of 1; after five steps time is up.
"""

import functools
from typing import Any, NamedTuple

import chex
import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments
from explorax.environments import gymnax_adapter, specs

pytestmark = pytest.mark.newest

GOAL, LIMIT = 3, 5

record = functools.partial(chex.dataclass, frozen=True, mappable_dataclass=False)


@record
class State:
  position: Any
  time: Any


START = State(np.int32(0), np.int32(0))


@record
class LimitedParams:
  max_steps_in_episode: Any = LIMIT


class Discrete(NamedTuple):
  n: int
  shape: tuple[int, ...] = ()


def observe(state):
  return jnp.array([state.position, state.time], jnp.float32)


def walk(state, action):
  """(state, reward, whether the goal is reached, whether time is up)."""
  state = State(state.position + action, state.time + 1)
  reached = state.position == GOAL
  return state, jnp.float32(reached), reached, state.time >= LIMIT


class _Gymnax:
  """What all of gymnax's versions have; `reset` and `step` restart episodes."""

  default_params = LimitedParams()

  def action_space(self, params):
    return Discrete(2)

  def reset_env(self, key, params):
    # Python's numbers, as in gymnax: the state's dtypes are weak, and change.
    state = State(0, 0)
    return observe(state), state

  def reset(self, key, params=None):
    return self.reset_env(key, params)

  def step(self, key, state, action, params=None):
    raise AssertionError("step() would lose the last observation")


class Gymnax1(_Gymnax):
  """gymnax 1.0: `step_env` says what is terminal, `is_truncated` when time is up."""

  def step_env(self, key, state, action, params):
    state, reward, reached, _ = walk(state, action)
    return observe(state), state, reward, reached, {"discount": 1.0 - reached}

  def is_truncated(self, state, params):
    return state.time >= params.max_steps_in_episode


class Gymnax0(_Gymnax):
  """gymnax 0.0.x, and Craftax: `done` and `is_terminal` are both of them."""

  def step_env(self, key, state, action, params):
    state, reward, _, _ = walk(state, action)
    done = self.is_terminal(state, params)
    return observe(state), state, reward, done, {"discount": 1.0 - done}

  def is_terminal(self, state, params):
    return (state.position == GOAL) | (state.time >= params.max_steps_in_episode)


class Wrapped:
  """A wrapper of gymnax 1.0: six values, and what it has not, it hands on."""

  def __init__(self):
    self._env = Gymnax1()

  def __getattr__(self, name):
    return getattr(self._env, name)

  def reset(self, key, params=None):
    observation, state = self._env.reset(key, params)
    return observation[::-1], state

  def step(self, key, state, action, params=None):
    after, reward, reached, late = walk(state, action)
    done = reached | late
    kept = jax.tree.map(lambda new, old: jnp.where(done, new, old), State(0, 0), after)
    info = {"final_observation": observe(after)[::-1]}
    return observe(kept)[::-1], kept, reward, reached, late, info


class Jaxtari:
  """JAXtari's game: no key, no parameters; five values, without a time limit."""

  def action_space(self):
    return Discrete(2)

  def reset(self, key=None):
    return {"position": START.position, "time": START.time}, START

  def step(self, state, action):
    state, reward, reached, _ = walk(state, action)
    return {"position": state.position, "time": state.time}, state, reward, reached, {}


class FourValues:
  """A user's own environment, in its shortest form."""

  num_actions = 2

  def reset(self, key, params):
    return observe(START), START

  def step(self, key, state, action):
    state, reward, reached, _ = walk(state, action)
    return observe(state), state, reward, reached


@record
class TimeStep:
  """navix's, which holds the state, and jumanji's, which has a discount."""

  observation: Any
  reward: Any
  step_type: Any
  discount: Any = ()
  state: Any = ()


class Navix:
  __module__ = "navix.environments"  # By which it is recognised.
  action_space = Discrete(2)
  observation_fn = staticmethod(observe)

  def reset(self, key, cache=None):
    observation = self.observation_fn(START)
    return TimeStep(observation, jnp.float32(0), jnp.int32(0), state=START)

  def step(self, timestep, action):
    state, reward, reached, late = walk(timestep.state, action)
    step_type = jnp.where(reached, 2, jnp.where(late, 1, 0))
    return TimeStep(self.observation_fn(state), reward, step_type, state=state)


def symbolic(state):
  return jnp.full((5, 5, 3), state.position, jnp.uint8)


class NavixCells(Navix):
  """Shows its cells, as most of navix."""

  observation_fn = staticmethod(symbolic)


class Jumanji:
  __module__ = "jumanji.environments"
  action_spec = dm_env.specs.DiscreteArray(2)

  def reset(self, key):
    first = jnp.int8(0)
    return START, TimeStep(observe(START), jnp.float32(0), first, jnp.float32(1))

  def step(self, state, action):
    state, reward, reached, late = walk(state, action)
    step_type = jnp.where(reached | late, 2, 1).astype(jnp.int8)
    return state, TimeStep(observe(state), reward, step_type, 1.0 - reached)


LIMITED = (Gymnax1, Gymnax0, Wrapped, Navix, Jumanji)
UNLIMITED = (Jaxtari, FourValues)


def expected(actions, *, limited):
  """(step type, reward, discount, observation) after each action, by plain numbers."""
  position, rows = 0, []
  for time, action in enumerate(actions, 1):
    position += action
    reached, late = position == GOAL, limited and time == LIMIT
    step_type = 2 if reached or late else 1
    rows.append((step_type, float(reached), float(not reached), (position, time)))
    if step_type == 2:
      break
  return rows


@pytest.mark.parametrize("make", [*LIMITED, *UNLIMITED], ids=lambda make: make.__name__)
def test_ends_and_last_observations_are_those_of_the_protocol(make):
  environment = environments.wrap(make(), seed=0)
  assert environment.action_spec().num_values == 2
  order = slice(None, None, -1 if make is Wrapped else 1)
  # To the goal; until time is up; both in the same step: the task has ended.
  for actions in ((1, 0, 1, 1), (0, 1, 0, 0, 0, 0), (0, 0, 1, 1, 1)):
    first = environment.reset()
    assert first.observation[order].tolist() == [0, 0]
    played = [environment.step(action) for action in actions]
    rows = expected(actions, limited=make in LIMITED)
    assert [
      (t.step_type, t.reward, t.discount, tuple(t.observation[order]))
      for t in played[: len(rows)]
    ] == rows
    assert len(rows) == len(played) or played[len(rows)].first()


def test_cells_of_navix_are_categories():
  environment = environments.wrap(NavixCells(), seed=0)
  spec = environment.observation_spec()
  assert isinstance(spec, specs.CategoricalImage)
  assert spec.channels == (("object", 11), ("colour", 6), ("state", 4))
  environment.reset()
  spec.validate(environment.step(1).observation)
  encoding = environments.make_encoding(spec)
  cells = jnp.ones((5, 5, 3), jnp.uint8)
  np.testing.assert_array_equal(jax.jit(encoding.on_device)(cells), cells)


def test_a_scan_steps_gymnax():
  """The arrays of its states keep their dtypes, even if a reset's are weak."""
  environment, params = environments.wrap(Gymnax1(), seed=0).raw.pure
  key = jax.random.PRNGKey(0)

  def step(state, action):
    state, timestep = environment.step(key, state, action, params)
    return state, timestep.reward

  state, _ = environment.reset(key, params)
  _, rewards = jax.lax.scan(step, state, jnp.ones(GOAL, jnp.int32))
  assert rewards.tolist() == [0, 0, 1]


def test_environments_of_no_protocol_are_refused():
  class OldWrapper(Wrapped):
    """Of gymnax 0.0.x: the last observation is lost."""

    def step(self, key, state, action, params=None):
      observation, state, reward, reached, late, _ = super().step(key, state, action)
      return observation, state, reward, reached | late, {}

  class Continuous(FourValues):
    def action_space(self, params):
      return dm_env.specs.Array((1,), np.float32)

  class Stateful(FourValues):
    def step(self, action):
      raise AssertionError

  class Keyed(FourValues):
    def reset(self, key, params):
      return jnp.zeros(2), jax.random.key(3)

    def step(self, key, state, action):
      return jnp.zeros(2), state, 0.0, False

  for make, message in (
    (OldWrapper, "loses the last observation"),
    (Continuous, "discretise continuous actions"),
    (Stateful, r"step\(action\) is no pure function of JAX"),
    (Keyed, "contains a typed key"),
  ):
    with pytest.raises(TypeError, match=message):
      gymnax_adapter.GymnaxEnvironment(make())
