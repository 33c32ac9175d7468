"""bsuite's Catch, in JAX: a paddle catches a ball that falls straight down."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import drawing, jax_types

ROWS, COLUMNS = 10, 5


class Params(NamedTuple):
  """There are none."""


class State(NamedTuple):
  """Columns of ball and paddle, and the ball's row from the top, int32 `[]` each."""

  ball: jax.Array
  row: jax.Array
  paddle: jax.Array


@dataclasses.dataclass(frozen=True)
class Catch(jax_types.Simulation):
  """bsuite's Catch (Osband et al., 2020).

  A ball starts at the top in a random column, and falls one row in each step. Actions
  0, 1 and 2 move the paddle, which starts in the middle of the last row, to the left,
  not at all and to the right. The ninth step ends the episode, and earns 1 if ball and
  paddle are in one column, else −1. Observations are float32 `[10, 5]`, 1 at the ball
  and at the paddle.
  """

  num_actions = 3

  def default_params(self) -> Params:
    return Params()

  def observation_spec(self) -> dm_env.specs.BoundedArray:
    return dm_env.specs.BoundedArray((ROWS, COLUMNS), np.float32, 0.0, 1.0, "board")

  def begin(self, key: jax.Array, params: Params) -> State:
    ball = jax.random.randint(key, (), 0, COLUMNS)
    return State(ball, jnp.int32(0), jnp.int32(COLUMNS // 2))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    paddle = jnp.clip(state.paddle + action - 1, 0, COLUMNS - 1)
    state = State(state.ball, state.row + 1, paddle)
    landed = state.row == ROWS - 1
    reward = jnp.where(state.ball == paddle, 1.0, -1.0)
    return state, jnp.where(landed, reward, 0.0), landed

  def observe(self, state: State) -> jax.Array:
    ball = jax_types.one_hot((ROWS, COLUMNS), state.row, state.ball)
    paddle = jax_types.one_hot((ROWS, COLUMNS), jnp.int32(ROWS - 1), state.paddle)
    return jnp.maximum(ball, paddle)

  def render(self, state: State, params: Params) -> jax.Array:
    """The paddle and the ball."""
    paddle, ball = (ROWS - 1, state.paddle), (state.row, state.ball)
    return drawing.picture(
      (ROWS, COLUMNS), drawing.LIGHT, (paddle, drawing.BLUE), (ball, drawing.GOLD)
    )
