"""A binary tree: at each level one action climbs, and the other ends the episode."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, jax_types, specs


class Params(NamedTuple):
  """Parameters that may change without recompilation.

  Attributes:
    up: int32 `[L]`, the action that goes up at each level; the other one ends the
      episode.
  """

  up: jax.Array | np.ndarray


class State(NamedTuple):
  """The agent's level, int32 `[]`: 0 to L − 1, or L after the last step."""

  level: jax.Array


@dataclasses.dataclass(frozen=True)
class BinaryTree(ranges.Checked, jax_types.Simulation):
  """The Binary Tree MDP of paper 4 (Flennerhag et al., 2020, figures 4 and 5).

  There are L levels. At each level, one of two actions ends the episode with a reward
  of 0, and the other one moves up, at the last level to the leaf, which pays 1. Which
  action moves up is drawn at random for each level and fixed over episodes:
  `action_mapping(mapping_seed, L)`. Set `Params.up` for a different mapping in each
  environment of a batch. All other rewards are 0. (After Janz et al., 2019, "Successor
  Uncertainties".)

  The paper does not describe the observations: here they are one-hot levels, all zeros
  at the end.
  """

  num_actions = 2

  size: ranges.PositiveInt = 50  # L. The paper has 10, 20, … 250.
  mapping_seed: ranges.Seed = 0  # Of the actions that move up.

  def default_params(self) -> Params:
    return Params(action_mapping(self.mapping_seed, self.size))

  def observation_spec(self) -> specs.OneHotArray:
    return specs.OneHotArray((self.size,), "level")

  def begin(self, key: jax.Array, params: Params) -> State:
    return State(jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    up = action == jnp.asarray(params.up)[state.level]
    reward = up & (state.level == self.size - 1)
    level = jnp.where(up, state.level + 1, self.size)
    return State(level), reward, level == self.size

  def observe(self, state: State) -> jax.Array:
    return jax_types.one_hot((self.size,), state.level)

  def render(self, state: State, params: Params) -> jax.Array:
    """The trunk, with the results of actions 0 and 1 on its left and right.

    The lowest level is at the bottom; the agent is shown until the last step.
    """
    column = 2 * jnp.asarray(params.up)  # Of the action that moves up: 0 or 2.
    return drawing.picture(
      (self.size, 3),
      drawing.GREY,
      ((jnp.arange(self.size), column), drawing.GREEN),
      ((self.size - 1, column[-1]), drawing.GOLD),
      ((slice(None), 1), drawing.LIGHT),
      ((state.level, 1), drawing.BLUE),
    )[::-1]


def action_mapping(seed: int, size: int) -> np.ndarray:
  """The action that goes up at each level: int32 `[size]` of fair coins, 0 or 1."""
  # This generator gives the same numbers in every numpy version.
  return np.random.RandomState(seed).randint(2, size=size).astype(np.int32)
