"""bsuite's Catch, in JAX: a paddle catches a ball that falls straight down."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import drawing, jax_types

ROWS, COLUMNS = 10, 5
RENDERED_PIXELS = 12
COLOURS = {"space": (230, 230, 230), "paddle": (30, 60, 200), "ball": (230, 180, 30)}


class Params(NamedTuple):
  """There are none."""


class State(NamedTuple):
  """Columns of ball and paddle, and the ball's row from the top, int32 `[]` each."""

  ball: jax.Array
  row: jax.Array
  paddle: jax.Array


@dataclasses.dataclass(frozen=True)
class Catch(jax_types.Environment):
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

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """The ball in a column drawn uniformly."""
    ball = jax.random.randint(key, (), 0, COLUMNS)
    state = State(ball, jnp.int32(0), jnp.int32(COLUMNS // 2))
    return state, jax_types.restart(_observe(state))

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """Moves paddle and ball; nothing is random."""
    paddle = jnp.clip(state.paddle + action - 1, 0, COLUMNS - 1)
    state = State(state.ball, state.row + 1, paddle)
    landed = state.row == ROWS - 1
    reward = jnp.where(state.ball == paddle, 1.0, -1.0)
    return state, jax_types.transition(
      _observe(state), jnp.where(landed, reward, 0.0), terminated=landed
    )

  def render(self, state: State, params: Params) -> jax.Array:
    """uint8 `[RENDERED_PIXELS · 10, RENDERED_PIXELS · 5, 3]`."""
    image = drawing.fill((ROWS, COLUMNS), COLOURS["space"])
    image = drawing.dot(image, (ROWS - 1, state.paddle), COLOURS["paddle"])
    image = drawing.dot(image, (state.row, state.ball), COLOURS["ball"])
    return drawing.enlarge(image, RENDERED_PIXELS)


def _observe(state: State) -> jax.Array:
  ball = jax_types.one_hot((ROWS, COLUMNS), state.row, state.ball)
  paddle = jax_types.one_hot((ROWS, COLUMNS), jnp.int32(ROWS - 1), state.paddle)
  return jnp.maximum(ball, paddle)
