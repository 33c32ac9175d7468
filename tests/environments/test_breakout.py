"""Breakout, against a plain loop of MinAtar's rules."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import breakout

GAME = breakout.Breakout()
PARAMS = GAME.default_params()._replace(sticky=0.0)
reset, step = jax.jit(GAME.reset), jax.jit(GAME.step)
KEY = jax.random.PRNGKey(0)
STAY, LEFT, RIGHT = range(3)


VECTORS = {"nw": (-1, -1), "ne": (1, -1), "se": (1, 1), "sw": (-1, 1)}
ACROSS = {"nw": "ne", "ne": "nw", "se": "sw", "sw": "se"}
UPSIDE = {"nw": "sw", "sw": "nw", "ne": "se", "se": "ne"}


class _Oracle:
  """The rules once more: directions by name, positions as (x, y), a set of bricks."""

  def __init__(self, right):
    self.ball, self.direction = ((9, 3), "sw") if right else ((0, 3), "se")
    self.trail = self.ball
    self.paddle = 4
    self.build()
    self.in_brick = self.over = False

  def build(self):
    self.bricks = {(x, y) for x in range(10) for y in (1, 2, 3)}

  def step(self, action):
    if action == LEFT and self.paddle > 0:
      self.paddle -= 1
    if action == RIGHT and self.paddle < 9:
      self.paddle += 1
    old_x, old_y = self.trail = self.ball
    dx, dy = VECTORS[self.direction]
    x, y = old_x + dx, old_y + dy
    if not 0 <= x <= 9:
      x = old_x
      self.direction = ACROSS[self.direction]
    was_in_brick, self.in_brick = self.in_brick, (x, y) in self.bricks
    reward = 0.0
    if y == -1:
      y, self.direction = 0, UPSIDE[self.direction]
    elif self.in_brick and not was_in_brick:
      self.bricks.remove((x, y))
      y, self.direction, reward = old_y, UPSIDE[self.direction], 1.0
    elif y == 9:
      if not self.bricks:
        self.build()
      if self.paddle == old_x:
        y, self.direction = 8, UPSIDE[self.direction]
      elif self.paddle == x:
        y = 8
        self.direction = ACROSS[UPSIDE[self.direction]]
      else:
        self.over = True
    self.ball = (x, y)
    return reward

  def observe(self):
    image = np.zeros((10, 10, 4), np.uint8)
    for channel, places in enumerate(
      [{(self.paddle, 9)}, {self.ball}, {self.trail}, self.bricks]
    ):
      for x, y in places:
        image[y, x, channel] = 255
    return image


def _player(oracle, rng, skill):
  """Follows the ball, or gets in its way from the side, or dithers."""
  if rng.random() > skill:
    return int(rng.integers(3))
  x, y = oracle.ball
  dx, dy = VECTORS[oracle.direction]
  lands = x + dx * (8 - y) if dy > 0 else x
  lands = abs(lands) if lands < 9 else 18 - lands
  target = np.clip(lands + (dx if rng.random() < 0.5 else 0), 0, 9)
  return STAY if target == oracle.paddle else LEFT if target < oracle.paddle else RIGHT


_play = jax.jit(
  lambda state, actions: jax.lax.scan(
    lambda state, action: GAME.step(KEY, state, action, PARAMS), state, actions
  )
)


def _episode(seed, skill, most=999):
  """Plays one with both; returns what happened in it, by name."""
  rng = np.random.default_rng(seed)
  state, first = reset(jax.random.PRNGKey(seed), PARAMS)
  oracle = _Oracle(right=bool(state.ball[1]))
  np.testing.assert_array_equal(first.observation, oracle.observe())
  actions, expected = np.zeros(most, np.int32), []
  walls, rebuilt, through = 0, 0, 0
  while len(expected) < most and not oracle.over:
    actions[len(expected)] = action = _player(oracle, rng, skill)
    standing, was_in_brick = len(oracle.bricks), oracle.in_brick
    reward = oracle.step(action)
    expected.append((oracle.over, reward, 1.0 - oracle.over, oracle.observe()))
    rebuilt += len(oracle.bricks) > standing
    through += was_in_brick and oracle.in_brick
    walls += oracle.ball[0] == oracle.trail[0]
  over, *others = zip(*expected, strict=True)
  step_type, *ours = jax.device_get(_play(state, actions)[1])
  np.testing.assert_array_equal(step_type[: len(over)] == dm_env.StepType.LAST, over)
  for our, other in zip(ours, others, strict=True):
    np.testing.assert_array_equal(our[: len(over)], np.stack(other))
  return np.array([oracle.over, sum(others[0]), rebuilt, through, walls])


def test_follows_the_rules_over_whole_episodes():
  dithering = sum(_episode(seed, skill=0.0) for seed in range(5))
  assert dithering[0] == 5  # All lost.
  playing = sum(_episode(seed, skill=0.98) for seed in range(6))
  _, rewards, rebuilt, through, walls = playing
  # Whatever the rules provide for has happened.
  assert rewards > 100 and rebuilt >= 2 and through >= 1 and walls >= 10


def test_begins_on_either_side_with_all_bricks():
  many = jax.jit(jax.vmap(GAME.reset, (0, None)))
  state, timestep = jax.device_get(many(jax.random.split(KEY, 400), PARAMS))
  right = state.ball[:, 1] == 9
  # Five standard deviations of 400 fair coins.
  assert abs(right.mean() - 0.5) < 0.125
  for i in range(4):
    np.testing.assert_array_equal(
      timestep.observation[i], _Oracle(right[i]).observe(), strict=True
    )
  assert timestep.reward[0] == 0 and timestep.step_type[0] == dm_env.StepType.FIRST


def test_sticky_actions_are_the_last_one_done():
  assert GAME.default_params().sticky == 0.1
  state, _ = reset(KEY, PARAMS)
  # Nothing but the no-op that episodes begin with is ever done.
  for _ in range(3):
    state, _ = step(KEY, state, jnp.int32(RIGHT), PARAMS._replace(sticky=1.0))
  assert state.paddle == 4
  state, _ = step(KEY, state, jnp.int32(RIGHT), PARAMS)
  assert (state.paddle, state.action) == (5, RIGHT)
  many = jax.jit(jax.vmap(GAME.step, (0, None, None, None)))
  keys = jax.random.split(jax.random.PRNGKey(1), 4000)
  params = PARAMS._replace(sticky=0.3)
  after, _ = many(keys, state, jnp.int32(LEFT), params)
  again = np.asarray(after.action) == RIGHT
  np.testing.assert_array_equal(after.paddle, np.where(again, 6, 4))
  # Five standard deviations of 4000 tosses.
  assert abs(again.mean() - 0.3) < 0.037
