"""Breakout on ten by ten positions, by MinAtar's rules."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, jax_types

SIZE = 10  # Positions along a side.
BRICK_ROWS = (1, 4)  # The first row, and the row after the last.
CHANNELS = ("paddle", "ball", "trail", "brick")
ON = 255  # Value of occupied positions in an observation; 0 elsewhere.
START_ROW = 3  # Of the ball, in the left or the right column.
START_POSITION = 4  # Of the paddle.
COLOURS = (drawing.BLUE, drawing.GOLD, drawing.GREY, drawing.RED)  # Of the channels.


class Params(NamedTuple):
  """Parameters that may change without recompilation.

  Attributes:
    sticky: probability of repeating the last action instead of the chosen one,
      float32 `[]`.
    time_limit: steps after which an episode is truncated, int32 `[]`.
  """

  sticky: jax.Array | ranges.Probability
  time_limit: jax.Array | ranges.PositiveInt


class State(NamedTuple):
  """An episode.

  Attributes:
    paddle: int32 `[]`, its column; its row is the last one.
    ball: int32 `[2]`, row and column.
    trail: int32 `[2]`, where the ball was one step before.
    velocity: int32 `[2]`, rows and columns per step, −1 or 1 each.
    bricks: bool `[10, 10]`, the remaining ones.
    striking: bool `[]`, whether the ball met a brick in the last step.
    action: int32 `[]`, taken in the last step; 0 at an episode's start.
    time: int32 `[]`, steps taken.
  """

  paddle: jax.Array
  ball: jax.Array
  trail: jax.Array
  velocity: jax.Array
  bricks: jax.Array
  striking: jax.Array
  action: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class Breakout(jax_types.Simulation):
  """Breakout with MinAtar's rules (Young and Tian, 2019, arXiv:1903.03176).

  Actions 0, 1 and 2 keep the paddle in place, move it left, and move it right:
  MinAtar's minimal set. The ball moves one row and one column per step, and walls and
  ceiling reflect it. A brick that it meets breaks, for a reward of 1, and reflects it
  vertically, unless it also met a brick in the previous step; then it flies through.
  When the ball would enter the last row, the paddle reflects it vertically if it is
  below the ball, and in both directions if it is at the ball's next position;
  otherwise the episode ends. There are three rows of bricks at first, and again when
  the ball reaches the last row with none left. An episode starts with the ball on the
  left or right, with equal probability, flying inwards and down.

  These are MinAtar's rules step by step, including its sticky actions (probability 0.1
  by default), with three differences: episodes are truncated after 1000 steps
  (MinAtar's are not); a repeated action is from the same episode; and observations,
  uint8 `[10, 10, 4]` of paddle, ball, trail and bricks, have 255 instead of true, which
  networks for images see as 1. As in MinAtar without ramping, the difficulty is
  constant.
  """

  num_actions = 3

  def default_params(self) -> Params:
    return Params(sticky=0.1, time_limit=1000)

  def observation_spec(self) -> dm_env.specs.Array:
    return dm_env.specs.Array((SIZE, SIZE, len(CHANNELS)), np.uint8, "channels")

  def begin(self, key: jax.Array, params: Params) -> State:
    right = jax.random.bernoulli(key)
    ball = jnp.stack([jnp.int32(START_ROW), jnp.where(right, SIZE - 1, 0)])
    return State(
      paddle=jnp.int32(START_POSITION),
      ball=ball,
      trail=ball,
      velocity=jnp.stack([jnp.int32(1), jnp.where(right, -1, 1)]),
      bricks=_wall(),
      striking=jnp.bool_(False),
      action=jnp.int32(0),
      time=jnp.int32(0),
    )

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    again = jax.random.bernoulli(key, params.sticky)
    action = jnp.where(again, state.action, action).astype(jnp.int32)
    paddle = jnp.clip(state.paddle + jnp.array([0, -1, 1])[action], 0, SIZE - 1)

    (row, column), (down, right) = state.ball + state.velocity, state.velocity
    at_side = (column < 0) | (column >= SIZE)
    column = jnp.clip(column, 0, SIZE - 1)
    # At most one of these is in the ball's way.
    at_ceiling = row < 0
    at_brick = ~at_ceiling & state.bricks[row, column]
    at_bottom = row == SIZE - 1
    breaks = at_brick & ~state.striking
    above = at_bottom & (state.ball[1] == paddle)
    beside = at_bottom & ~above & (column == paddle)
    lost = at_bottom & ~above & ~beside

    bricks = state.bricks.at[row, column].set(state.bricks[row, column] & ~breaks)
    bricks = jnp.where(at_bottom & ~jnp.any(bricks), _wall(), bricks)
    stays = at_ceiling | breaks | above | beside
    state = State(
      paddle=paddle,
      ball=jnp.stack([jnp.where(stays, state.ball[0], row), column]),
      trail=state.ball,
      velocity=jnp.stack(
        [jnp.where(stays, -down, down), jnp.where(at_side ^ beside, -right, right)]
      ),
      bricks=bricks,
      striking=at_brick,
      action=action,
      time=state.time + 1,
    )
    return state, breaks, lost

  def observe(self, state: State) -> jax.Array:
    def at(row: jax.Array | int, column: jax.Array) -> jax.Array:
      return jnp.zeros((SIZE, SIZE), bool).at[row, column].set(True)

    channels = (at(SIZE - 1, state.paddle), at(*state.ball), at(*state.trail))
    image = jnp.stack([*channels, state.bricks], axis=-1)
    return image.astype(jnp.uint8) * jnp.uint8(ON)

  def render(self, state: State, params: Params) -> jax.Array:
    """The bricks, the ball and its trail, and the paddle."""
    masks = jnp.moveaxis(self.observe(state) == ON, -1, 0)
    layers = [*zip(masks, COLOURS, strict=True)][::-1]
    return drawing.picture((SIZE, SIZE), drawing.LIGHT, *layers)


def _wall() -> jax.Array:
  """All bricks: bool `[10, 10]`."""
  first, end = BRICK_ROWS
  return jnp.zeros((SIZE, SIZE), bool).at[first:end].set(True)
