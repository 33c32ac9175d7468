"""A chain of states that pays more the further one goes before stopping."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, jax_types, specs

RIGHT, DOWN = 0, 1


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
class Chain(ranges.Checked, jax_types.Simulation):
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

  def begin(self, key: jax.Array, params: Params) -> State:
    return State(jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    down = action == DOWN
    reward = jnp.where(down, jnp.asarray(params.rewards)[state.position], 0.0)
    position = jnp.where(down, self.size, state.position + 1)
    return State(position), reward, position == self.size

  def observe(self, state: State) -> jax.Array:
    return jax_types.one_hot((self.size,), state.position)

  def render(self, state: State, params: Params) -> jax.Array:
    """The states, those with a reward in gold, and the agent until the last step."""
    pays = (jnp.asarray(params.rewards) != 0)[None]
    agent = (0, state.position)
    return drawing.picture(
      (1, self.size), drawing.LIGHT, (pays, drawing.GOLD), (agent, drawing.BLUE)
    )


def make_rewards(size: int) -> np.ndarray:
  """float32 `[size]`: n in state n(n + 3)/2 − 1 for n = 1, 2, …, zero elsewhere."""
  n = np.arange(1, size)
  state = n * (n + 3) // 2 - 1
  rewards = np.zeros(size, np.float32)
  rewards[state[state < size]] = n[state < size]
  return rewards
