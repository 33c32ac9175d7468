"""Episodes one after another within a scan, against stepping by hand."""

import collections
import dataclasses

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import auto_reset, disco_maze, gridworld, jax_types

STEPS = 60
BATCH = 3

MAZE = disco_maze.DiscoMaze(5)
ROOM = gridworld.GridWorld(5)
# Time limits, which differ within the batch; some episodes end before them.
CASES = {"disco_maze": (MAZE, (2, 10, 50)), "gridworld": (ROOM, (7, 20, 1))}


def _params(environment, limits):
  params = environment.default_params()
  limited = [params._replace(time_limit=np.int32(limit)) for limit in limits]
  return jax.tree.map(lambda *x: jnp.stack(x), *limited)


def _keys_and_actions(environment):
  reset_key, step_key, action_key = jax.random.split(jax.random.PRNGKey(0), 3)
  return (
    jax.random.split(reset_key, BATCH),
    jax.random.split(step_key, (STEPS, BATCH)),
    jax.random.randint(action_key, (STEPS, BATCH), 0, environment.num_actions),
  )


def _by_hand(environment, params, reset_keys, step_keys, actions):
  """Who steps resets: the timesteps and metrics of each environment, stacked."""
  reset, step = jax.jit(environment.reset), jax.jit(environment.step)
  measure = jax.jit(environment.metrics)
  columns = []
  for i in range(BATCH):
    own = jax.tree.map(lambda x, i=i: x[i], params)
    state, timestep = reset(reset_keys[i], own)
    rows = [(timestep, measure(state, own))]
    for t in range(STEPS):
      if rows[-1][0].step_type == dm_env.StepType.LAST:
        state, timestep = reset(step_keys[t, i], own)
      else:
        state, timestep = step(step_keys[t, i], state, actions[t, i], own)
      rows.append((timestep, measure(state, own)))
    columns.append(jax.tree.map(lambda *x: np.stack(x), *rows))
  return jax.tree.map(lambda *x: np.stack(x, axis=1), *columns)


def _scan_of_vmaps(environment, params, reset_keys, step_keys, actions):
  state, first = jax.vmap(environment.reset)(reset_keys, params)
  measure = jax.vmap(environment.metrics)

  def step(state, inputs):
    state, timestep = jax.vmap(environment.step)(inputs[0], state, inputs[1], params)
    return state, (timestep, measure(state, params))

  _, rest = jax.lax.scan(step, state, (step_keys, actions))
  return first, measure(state, params), rest


def _vmap_of_scans(environment, params, reset_keys, step_keys, actions):
  def episodes(params, reset_key, step_keys, actions):
    state, first = environment.reset(reset_key, params)
    metrics = environment.metrics(state, params)

    def step(state, inputs):
      state, timestep = environment.step(inputs[0], state, inputs[1], params)
      return state, (timestep, environment.metrics(state, params))

    return first, metrics, jax.lax.scan(step, state, (step_keys, actions))[1]

  run = jax.vmap(episodes, (0, 0, 1, 1), (0, 0, 1))
  return run(params, reset_keys, step_keys, actions)


@pytest.mark.parametrize("name", CASES)
def test_scanning_is_stepping_by_hand(name):
  environment, limits = CASES[name]
  inputs = (_params(environment, limits), *_keys_and_actions(environment))
  expected = _by_hand(environment, *inputs)
  kinds = collections.Counter(expected[0].step_type.ravel().tolist())
  assert min(kinds[kind] for kind in (0, 1, 2)) > BATCH
  assert {0.0, 1.0} == set(
    expected[0].discount[expected[0].step_type == dm_env.StepType.LAST].tolist()
  )
  for run in (_scan_of_vmaps, _vmap_of_scans):
    run = jax.jit(run, static_argnums=0)
    first, metrics, rest = run(auto_reset.AutoReset(environment), *inputs)
    joined = jax.tree.map(
      lambda one, more: np.concatenate([one[None], more]), (first, metrics), rest
    )
    jax.tree.map(np.testing.assert_array_equal, joined, expected)
    compiled = run._cache_size()
    # Neither other values nor another, equal environment compile anew.
    other = _params(environment, (3, 4, 5))
    again = auto_reset.AutoReset(dataclasses.replace(environment))
    run(again, other, inputs[1][::-1], *inputs[2:])
    assert run._cache_size() == compiled


@dataclasses.dataclass(frozen=True)
class Counted:
  """Ends after as many steps as `params` says; counts the resets really computed."""

  resets: collections.Counter = dataclasses.field(compare=False)

  def default_params(self):
    return 3

  def observation_spec(self):
    return dm_env.specs.Array((), np.float32, "count")

  @property
  def num_actions(self):
    return 2

  def reset(self, key, params):
    jax.debug.callback(lambda _: self.resets.update(["reset"]), params)
    return jnp.int32(0), jax_types.restart(jnp.float32(0.0))

  def step(self, key, state, action, params):
    return state + 1, jax_types.transition(
      (state + 1).astype(jnp.float32),
      1.0,
      terminated=state + 1 == params,
      truncated=jnp.bool_(False),
    )

  def metrics(self, state, params):
    return {}


def _count(lengths, steps):
  """Resets computed in `steps` steps of episodes that last `lengths`."""
  resets = collections.Counter()
  environment = auto_reset.AutoReset(Counted(resets))

  def run(limit):
    key = jax.random.PRNGKey(0)
    state, _ = environment.reset(key, limit)

    def step(state, _):
      state, timestep = environment.step(key, state, jnp.int32(0), limit)
      return state, timestep.step_type

    return jax.lax.scan(step, state, None, steps)[1]

  for _ in lengths.shape:
    run = jax.vmap(run)
  first = np.asarray(jax.jit(run)(lengths)) == dm_env.StepType.FIRST
  jax.effects_barrier()
  return resets["reset"], first.reshape(lengths.size, steps)


def test_alone_it_computes_the_resets_that_happen():
  computed, first = _count(jnp.asarray(3), 12)
  assert first.sum() == 3  # Steps 4, 8 and 12.
  assert computed == 1 + 3


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_in_a_batch_it_computes_resets_where_one_happens(shape):
  """Under one vmap and under two: nothing in steps in which no episode begins."""
  computed, first = _count(jnp.asarray([3, 3, 5, 100]).reshape(shape), 12)
  steps_with_a_reset = first.any(axis=0).sum()
  assert steps_with_a_reset == 4  # Steps 4, 6, 8 and 12.
  # Each of them for the whole batch, as is the first.
  assert computed == 4 * (1 + 4)


def test_everything_else_is_the_wrapped_environments():
  wrapped = auto_reset.AutoReset(ROOM)
  assert wrapped.num_actions == ROOM.num_actions
  assert wrapped.observation_spec() == ROOM.observation_spec()
  jax.tree.map(
    np.testing.assert_array_equal, wrapped.default_params(), ROOM.default_params()
  )
  assert hash(wrapped) == hash(auto_reset.AutoReset(gridworld.GridWorld(5)))
  assert (
    wrapped
    == auto_reset.AutoReset(gridworld.GridWorld(5))
    != auto_reset.AutoReset(gridworld.GridWorld(6))
  )
