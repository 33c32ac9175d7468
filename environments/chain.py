"""A chain of states that pays more the further one goes before stopping."""

import dataclasses
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, jax_types, specs

RIGHT, DOWN = 0, 1
RENDERED_PIXELS = 12
COLOURS = {
  "state": (230, 230, 230),  # It pays nothing.
  "reward": (230, 180, 30),
  "agent": (30, 60, 200),
}


class Params(NamedTuple):
  """Parameters that may change without recompilation.

  Attributes:
    rewards: float32 `[size]`, what "down" earns in each state.
  """

  rewards: jax.Array | np.ndarray


class State(NamedTuple):
  """Where the agent is, int32 `[]`: 0 to size − 1, or size after the last step."""

  position: jax.Array


@dataclasses.dataclass(frozen=True)
class Chain(ranges.Checked, jax_types.Environment):
  """The modified chain MDP of paper 1 (Dabney et al., 2021, figure 2a).

  Action 0, "right", moves to the next state and earns nothing. Action 1, "down", ends
  the episode with the reward of the state. The rewards are n zeros followed by a single
  n, for n = 1, 2, 3, …: 0, 1, 0, 0, 2, 0, 0, 0, 3, …, so that n is paid in state
  n(n + 3)/2 − 1. Observations are one-hot states, all zeros at the end.

  The paper gives neither the length nor the last state's behaviour. The discount
  determines the most valuable reward, and an endless walk earns nothing; here "right"
  in the last state ends the episode without a reward.
  """

  num_actions = 2

  # States; up to n = 5 (the paper gives no number). The second pays the first reward.
  size: ranges.AtLeastTwo = 20

  def default_params(self) -> Params:
    return Params(make_rewards(self.size))

  def observation_spec(self) -> specs.OneHotArray:
    return specs.OneHotArray((self.size,), "state")

  def reset(self, key: jax.Array, params: Params) -> tuple[State, dm_env.TimeStep]:
    """The agent in the first state; nothing is random."""
    state = State(jnp.int32(0))
    return state, jax_types.restart(self._observe(state))

  def step(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, dm_env.TimeStep]:
    """Moves on, or stops for the reward."""
    down = action == DOWN
    reward = jnp.where(down, jnp.asarray(params.rewards)[state.position], 0.0)
    state = State(jnp.where(down, self.size, state.position + 1))
    return state, jax_types.transition(
      self._observe(state), reward, terminated=state.position == self.size
    )

  def render(self, state: State, params: Params) -> jax.Array:
    """uint8 `[RENDERED_PIXELS, RENDERED_PIXELS · size, 3]`.

    After the last step the agent is outside the picture.
    """
    pays = (jnp.asarray(params.rewards) != 0)[None]
    image = drawing.fill((1, self.size), COLOURS["state"])
    image = drawing.paint(image, pays, COLOURS["reward"])
    image = drawing.dot(image, (0, state.position), COLOURS["agent"])
    return drawing.enlarge(image, RENDERED_PIXELS)

  def _observe(self, state: State) -> jax.Array:
    return jax_types.one_hot((self.size,), state.position)


def make_rewards(size: int) -> np.ndarray:
  """float32 `[size]`: n in state n(n + 3)/2 − 1 for n = 1, 2, …, zero elsewhere."""
  n = np.arange(1, size)
  state = n * (n + 3) // 2 - 1
  rewards = np.zeros(size, np.float32)
  rewards[state[state < size]] = n[state < size]
  return rewards
