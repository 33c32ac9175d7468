"""Environments in JAX: mazes, the disco maze, the adapter, and pure stepping."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from explorax import environments
from explorax.environments import (
  deep_sea,
  disco_maze,
  jax_adapter,
  jax_environments,
  jax_types,
  mazes,
  mountain_car,
)

MOVES = disco_maze.MOVES


def _parse(observation):
  """(open positions, the agent's position, the colour of each wall)."""
  agent = (observation == disco_maze.AGENT_COLOUR).all(-1)
  is_open = agent | (observation == disco_maze.PATH_COLOUR).all(-1)
  (position,) = zip(*np.nonzero(agent), strict=True)
  return is_open, tuple(int(x) for x in position), observation[~is_open]


def _action(observation, onto_open):
  """The first move onto an open position, or into a wall."""
  is_open, position, _ = _parse(observation)
  leads = [is_open[tuple(np.add(position, move))] for move in MOVES]
  return leads.index(onto_open)


def test_mazes_are_perfect_within_a_border_and_all_different():
  make = jax.jit(jax.vmap(mazes.perfect_maze, (0, None)), static_argnums=1)
  drawn = np.asarray(make(jax.random.split(jax.random.PRNGKey(0), 20), 11))
  for is_open in drawn:
    border = np.ones_like(is_open)
    border[1:-1, 1:-1] = False
    assert not is_open[border].any()
    assert is_open[1::2, 1::2].all()
    # Connected, and with one edge fewer than positions: a tree, no loops.
    assert scipy.ndimage.label(is_open)[1] == 1
    edges = np.sum(is_open[1:] & is_open[:-1]) + np.sum(is_open.T[1:] & is_open.T[:-1])
    assert edges == is_open.sum() - 1 == mazes.num_open(11) - 1
  assert len({is_open.tobytes() for is_open in drawn}) == 20


def _disco(time_limit):
  return environments.make(f"jax:disco_maze/5,time_limit={time_limit}", seed=0)


def test_colours_change_at_every_step_and_on_walls_only():
  environment = _disco(1000)
  observation = environment.reset().observation
  assert observation.shape == (5, 5, 3) and observation.dtype == np.uint8
  is_open, position, colours = _parse(observation)
  assert is_open.sum() == mazes.num_open(5)
  seen = [colours]
  for _ in range(200):
    action = _action(observation, onto_open=True)
    expected = tuple(np.add(position, MOVES[action]))
    observation = environment.step(action).observation
    now_open, position, colours = _parse(observation)
    np.testing.assert_array_equal(now_open, is_open)
    assert position == expected
    seen.append(colours)
  # 4 of 5 walls change colour on average.
  changed = [(a != b).any(-1) for a, b in itertools.pairwise(seen)]
  assert 0.77 < np.mean(changed) < 0.83 and np.any(changed, axis=1).all()
  palette, counts = np.unique(np.concatenate(seen), axis=0, return_counts=True)
  assert {tuple(c) for c in palette} == set(disco_maze.WALL_COLOURS)
  np.testing.assert_allclose(counts / counts.sum(), 0.2, atol=0.03)


def test_a_wall_ends_the_episode_and_a_new_maze_begins():
  environment, drawn = _disco(1000), set()
  for _ in range(10):
    observation = environment.reset().observation
    is_open, position, _ = _parse(observation)
    drawn.add((is_open.tobytes(), position))
    action = _action(observation, onto_open=False)
    timestep = environment.step(action)
    assert timestep.last() and timestep.discount == 0.0 and timestep.reward == 0.0
    assert _parse(timestep.observation)[1] == position
    assert environment.step(action).first()
  assert len(drawn) > 5


def test_default_time_limits():
  limits = {"breakout": 1000, "cartpole": 500, "cartpole_swingup": 1000}
  limits |= {"disco_maze/5": 50, "gridworld/5": 1000, "mountain_car": 5000}
  for name, limit in limits.items():
    assert jax_environments.make(name)[1].time_limit == limit


def test_a_time_limit_truncates_unless_the_last_step_hits_a_wall():
  environment = _disco(4)
  for into_wall in (False, True):
    timestep, steps = environment.reset(), 0
    while not timestep.last():
      onto_open = not into_wall or steps < 3
      timestep = environment.step(_action(timestep.observation, onto_open))
      steps += 1
    assert steps == 4
    assert timestep.discount == (0.0 if into_wall else 1.0)


def test_the_adapter_a_scan_and_a_batch_give_the_same_episode():
  """The adapter's episode, by `lax.scan`, and as one of a batch."""
  sea, params = jax_environments.make("deep_sea/5,stochastic=true")
  adapter = jax_adapter.JaxEnvironment(sea, params, seed=5)
  key, actions = adapter._key, [1, 0, 1, 1, 0]
  begun = adapter.reset()
  timesteps = [adapter.step(action) for action in actions]
  assert timesteps[-1].last()

  def episode(key):
    key, reset_key = jax.random.split(key)
    state, first = sea.reset(reset_key, params)

    def step(carry, action):
      key, step_key = jax.random.split(carry[0])
      state, timestep = sea.step(step_key, carry[1], action, params)
      return (key, state), timestep

    (_, state), rest = jax.lax.scan(step, (key, state), jnp.asarray(actions))
    return first, rest, sea.metrics(state, params)

  batch = jax.jit(jax.vmap(episode))(jnp.stack([jax.random.PRNGKey(0), key]))
  first, rest, metrics = jax.tree.map(lambda x: x[1], batch)
  np.testing.assert_array_equal(first.observation, begun.observation)
  assert (first.step_type, first.reward, first.discount) == (0, 0.0, 1.0)
  for name in rest._fields:
    expected = np.stack([getattr(timestep, name) for timestep in timesteps])
    np.testing.assert_array_equal(getattr(rest, name), expected)
  assert {k: float(v) for k, v in metrics.items()} == adapter.episode_metrics()
  other = jax.tree.map(lambda x: x[0], batch)[1].reward
  assert not np.array_equal(other, rest.reward)


@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_a_branch_on_any_in_batch_is_taken_where_it_must_be(shape):
  """Alone, under one vmap and under two: in steps in which any flag is true."""
  taken = collections.Counter()

  def run(flags):
    def step(total, flag):
      def branch():
        jax.debug.callback(lambda: taken.update(["branch"]))
        return total + 1

      branches = (jax_types.any_in_batch(flag), branch, lambda: total)
      return jax.lax.cond(*branches), None

    return jax.lax.scan(step, 0, flags)[0]

  flags = np.zeros((*shape, 12), bool)
  flags.reshape(-1, 12)[0, 3] = flags.reshape(-1, 12)[-1, 7] = True
  for _ in shape:
    run = jax.vmap(run)
  np.testing.assert_array_equal(jax.jit(run)(flags), np.full(shape, 2))
  jax.effects_barrier()
  assert taken["branch"] == 2


def test_settings_reach_the_fields_and_the_parameters():
  sea, params = jax_environments.make(
    "deep_sea/5,move_cost=0.5,mapping_seed=7,stochastic=true"
  )
  assert sea == deep_sea.DeepSea(5, stochastic=True, mapping_seed=7)
  assert params.move_cost == 0.5
  np.testing.assert_array_equal(params.right, deep_sea.action_mapping(7, 5))
  _, params = jax_environments.make("deep_sea/5,permuted=false")
  assert params.move_cost == 0.01
  np.testing.assert_array_equal(params.right, np.ones((5, 5)))
  car, params = jax_environments.make("mountain_car,noise=0.25")
  assert car == mountain_car.MountainCar() and params.noise == 0.25
  for size in (5, 7):  # A default that follows the size.
    assert jax_environments.make(f"disco_maze/{size}")[1].time_limit == 2 * size**2


@pytest.mark.parametrize(
  ("name", "value"),
  [
    ("disco_maze/20", "20"),
    ("disco_mase/21", "Did you mean jax:disco_maze/21"),
    ("disco_maze/5,time_limits=5", "Did you mean time_limit"),
    ("disco_maze/21,time_limit=0", "time_limit is 0"),
    ("disco_maze/5,time_limit=1,time_limit=2", "twice"),
    ("chain/9,n=2", "no settings"),
    ("deep_sea/5,move_cost=-0.5", "-0.5"),
    ("gridworld/20,obstacles=0.6,traps=0.4,world=1", "world 1 of size 20"),
  ],
)
def test_impossible_names_and_settings_are_refused(name, value):
  with pytest.raises(ValueError, match=value) as caught:
    environments.make(f"jax:{name}", seed=0)
  assert "\n" not in str(caught.value)
