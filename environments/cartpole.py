"""Barto, Sutton and Anderson's cart-pole, as in Gymnasium's CartPole-v1, in JAX."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import jax_types

# Gymnasium's, in metres, kilograms, seconds and newtons.
TIME_STEP = 0.02
GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
HALF_LENGTH = 0.5  # Of the pole.
FORCE = 10.0
LARGEST_POSITION = 2.4
LARGEST_ANGLE = np.float32(np.deg2rad(12))


class State(NamedTuple):
  """The state of cart and pole.

  Attributes:
    values: float32 `[4]`: x, dx/dt, the pole's angle θ in radians (0 when upright) and
      dθ/dt.
    time: int32 `[]`, steps taken.
  """

  values: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class Cartpole(jax_types.Simulation):
  """Gymnasium's CartPole-v1, in float32: each step earns 1 until the pole falls.

  Actions 0 and 1 push with −10 and 10 newtons for 0.02 s, with Euler's method. An
  episode terminates where |x| > 2.4 or |θ| > 12°, and is truncated after 500 steps. The
  four values start uniformly in [−0.05, 0.05). Observations are (x, dx/dt, θ, dθ/dt),
  float32 `[4]`, with Gymnasium's bounds in the spec.
  """

  num_actions = 2

  def default_params(self) -> jax_types.TimeLimit:
    return jax_types.TimeLimit(time_limit=500)

  def observation_spec(self) -> dm_env.specs.BoundedArray:
    high = np.array(
      [2 * LARGEST_POSITION, np.inf, 2 * LARGEST_ANGLE, np.inf], np.float32
    )
    return dm_env.specs.BoundedArray(
      (4,), np.float32, -high, high, "position and velocity"
    )

  def begin(self, key: jax.Array, params: jax_types.TimeLimit) -> State:
    values = jax.random.uniform(key, (4,), jnp.float32, -0.05, 0.05)
    return State(values, jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: jax_types.TimeLimit
  ) -> tuple[State, jax.Array, jax.Array]:
    _, speed, angle, angular_speed = state.values
    force = FORCE * (2.0 * action - 1.0)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    mass, lever = CART_MASS + POLE_MASS, POLE_MASS * HALF_LENGTH
    push = (force + lever * angular_speed**2 * sine) / mass
    angular_acceleration = (GRAVITY * sine - cosine * push) / (
      HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / mass)
    )
    acceleration = push - lever * angular_acceleration * cosine / mass
    change = jnp.stack([speed, acceleration, angular_speed, angular_acceleration])
    state = State(state.values + TIME_STEP * change, state.time + 1)
    fell = (jnp.abs(state.values[0]) > LARGEST_POSITION) | (
      jnp.abs(state.values[2]) > LARGEST_ANGLE
    )
    return state, jnp.float32(1.0), fell

  def observe(self, state: State) -> jax.Array:
    return state.values
