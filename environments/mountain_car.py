"""Mountain Car with a reward at the goal only: a weak car has to gather momentum."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import jax_types

# Sutton and Barto (2018), example 10.1; positions and velocities have no units there.
POSITIONS = (-1.2, 0.5)  # The goal is the right end.
START_POSITIONS = (-0.6, -0.4)
MAX_SPEED = 0.07  # Per step.
ENGINE = 0.001
GRAVITY = 0.0025


class Params(NamedTuple):
  """Parameters that may change without recompilation.

  Attributes:
    noise: variance of the Gaussian noise on the force, at least 0, float32 `[]`.
    time_limit: steps after which an episode is truncated, int32 `[]`.
  """

  noise: jax.Array | ranges.NonNegativeFloat
  time_limit: jax.Array | ranges.PositiveInt


class State(NamedTuple):
  """Position and velocity, float32 `[]` each, and the steps taken, int32 `[]`."""

  position: jax.Array
  velocity: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class MountainCar(jax_types.Simulation):
  """The sparse MountainCar of paper 1 (Dabney et al., 2021, figures 3 and 8).

  Actions 0, 1 and 2 select the force −1, 0 and 1. With noise of variance σ²,

    force = clip(action − 1 + σ·ξ, −1, 1), ξ ~ N(0, 1),
    velocity ← clip(velocity + 0.001·force − 0.0025·cos(3·position), −0.07, 0.07),
    position ← clip(position + velocity, −1.2, 0.5).

  The car stops at the left end. The right end is the goal, which earns 1 and ends the
  episode. All other rewards are 0; an episode is truncated after 5000 steps (the
  paper's appendix on the environments). There is no noise by default; figure 8 calls
  its variance the noise scale. Observations are (position, velocity), float32
  `[2]`, with their bounds in the spec.

  The paper refers to Sutton and Barto (2018) for the dynamics, which are used here: the
  car starts at rest, at a position drawn uniformly from [−0.6, −0.4). Gymnasium's
  MountainCar-v0 has another reward (−1 per step), another time limit (200), and
  positions up to 0.6.
  """

  num_actions = 3

  def default_params(self) -> Params:
    return Params(noise=0.0, time_limit=5000)

  def observation_spec(self) -> dm_env.specs.BoundedArray:
    low, high = POSITIONS
    return dm_env.specs.BoundedArray(
      (2,), np.float32, (low, -MAX_SPEED), (high, MAX_SPEED), "position and velocity"
    )

  def begin(self, key: jax.Array, params: Params) -> State:
    low, high = START_POSITIONS
    position = jax.random.uniform(key, (), jnp.float32, low, high)
    return State(position, jnp.float32(0.0), jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    noise = jnp.sqrt(jnp.float32(params.noise)) * jax.random.normal(key)
    force = jnp.clip(action - 1 + noise, -1.0, 1.0)
    slope = jnp.cos(3 * state.position)
    velocity = jnp.clip(
      state.velocity + ENGINE * force - GRAVITY * slope, -MAX_SPEED, MAX_SPEED
    )
    low, high = POSITIONS
    position = jnp.clip(state.position + velocity, low, high)
    velocity = jnp.where(position == low, 0.0, velocity)
    at_goal = position == high
    return State(position, velocity, state.time + 1), at_goal, at_goal

  def observe(self, state: State) -> jax.Array:
    return jnp.stack([state.position, state.velocity])
