"""Deep Sea: one sequence of actions in 2^N finds the reward."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import drawing, jax_types, specs

WATER = (120, 180, 230)  # In pictures.


class Params(NamedTuple):
  """Parameters that may change without recompilation.

  Attributes:
    move_cost: of an episode that goes right at every step; each step to the right
      costs move_cost / N. float32 `[]`.
    right: int32 `[N, N]`, the action that goes right in each row and column; the
      other one goes left.
  """

  move_cost: jax.Array | ranges.Probability
  right: jax.Array | np.ndarray


class State(NamedTuple):
  """An episode.

  Attributes:
    row: int32 `[]`, steps taken, 0 to N.
    column: int32 `[]`, 0 to N − 1.
    bad: bool `[]`, whether the agent went left on the diagonal.
    treasure: bool `[]`, whether it reached the goal's reward.
  """

  row: jax.Array
  column: jax.Array
  bad: jax.Array
  treasure: jax.Array


@dataclasses.dataclass(frozen=True)
class DeepSea(ranges.Checked, jax_types.Simulation):
  """Deep Sea (Osband et al. 2018), as in bsuite's `environments/deep_sea.py`.

  The agent starts in the top left corner of N × N positions. In each step it moves one
  row down and one column to the right or to the left (at the edges it keeps its
  column). Going right costs move_cost / N; in the last column it pays 1, which the
  agent reaches only if it goes right in all N steps: 0.99 in total. Episodes terminate
  after N steps. Observations are one-hot positions, all zeros at the end.

  - `stochastic`: going right fails with probability 1/N (the agent goes straight down
    and still pays), and the rewards in the two corners of the last row
    have noise ~ N(0, 1) added. This is bsuite's `deep_sea_stochastic`.
  - `permuted`, as in bsuite: which action goes right depends on the position and is
    fixed over episodes: `action_mapping(mapping_seed, N)`, drawn as in bsuite. This is
    the "adversarial" Deep Sea of paper 1 (Dabney et al., 2021, figure 14). Without it
    action 1 always goes right, as in the paper's figure 3, and an agent that prefers
    one action everywhere solves it without exploration. Set `Params.right` for a
    different mapping in each environment of a batch.

  Paper 1 mentions a cost at every step, bsuite charges only steps to the right; we
  follow bsuite. The best return is 0.99 in both cases.

  The metrics are `bsuite_info()`'s, counted within one episode: `bad_episode`, 1 if
  the agent went left on the way to the goal, and `denoised_return`, 1 if it reached
  the goal.
  """

  num_actions = 2

  # N. Paper 1, figure 3; bsuite has 10 to 50.
  size: ranges.AtLeastTwo = 20
  stochastic: bool = False
  permuted: bool = True
  mapping_seed: ranges.Seed = 42  # Of bsuite's sweeps. Read only if permuted.

  def default_params(self) -> Params:
    if self.permuted:
      right = action_mapping(self.mapping_seed, self.size)
    else:
      right = np.ones((self.size, self.size), np.int32)
    return Params(move_cost=0.01, right=right)

  def observation_spec(self) -> specs.OneHotArray:
    return specs.OneHotArray((self.size, self.size), "position", lower_triangle=True)

  def begin(self, key: jax.Array, params: Params) -> State:
    return State(jnp.int32(0), jnp.int32(0), jnp.bool_(False), jnp.bool_(False))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: Params
  ) -> tuple[State, jax.Array, jax.Array]:
    size, row, column = self.size, state.row, state.column
    right = action == jnp.asarray(params.right, jnp.int32)[row, column]
    treasure = right & (column == size - 1)
    reward = treasure - jnp.where(right, params.move_cost / size, 0.0)
    moves = right
    if self.stochastic:
      fails, noise = draw_tosses(key, size)
      moves = right & ~fails
      in_corner = (row == size - 1) & ((column == 0) | (column == size - 1))
      reward += jnp.where(in_corner, noise, 0.0)
    column = jnp.where(right, column + moves, column - 1)
    state = State(
      row=row + 1,
      column=jnp.clip(column, 0, size - 1),
      bad=state.bad | (~right & (row == state.column)),
      treasure=state.treasure | treasure,
    )
    return state, reward, state.row == size

  def observe(self, state: State) -> jax.Array:
    return jax_types.one_hot((self.size, self.size), state.row, state.column)

  def metrics(self, state: State, params: Params) -> dict[str, jax.Array]:
    return {"bad_episode": state.bad, "denoised_return": state.treasure}

  def render(self, state: State, params: Params) -> jax.Array:
    """The water below the diagonal, the goal, and the agent until the last step."""
    return drawing.picture(
      (self.size, self.size),
      drawing.LIGHT,
      (jnp.tri(self.size, dtype=bool), WATER),
      ((self.size - 1, self.size - 1), drawing.GOLD),
      ((state.row, state.column), drawing.BLUE),
    )


def action_mapping(seed: int, size: int) -> np.ndarray:
  """The action that goes right in each position, as bsuite draws it.

  Args:
    seed: bsuite's `mapping_seed`.
    size: N.

  Returns:
    int32 `[N, N]` of fair coins, 0 or 1.
  """
  drawn = np.random.RandomState(seed).binomial(1, 0.5, [size, size])
  return drawn.astype(np.int32)


def draw_tosses(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
  """The random draws of one step of the stochastic Deep Sea.

  Returns:
    Whether a step to the right fails, bool `[]`, with probability 1/N; and the noise
    of a corner's reward, float32 `[]`, ~ N(0, 1).
  """
  fails_key, noise_key = jax.random.split(key)
  return jax.random.bernoulli(fails_key, 1 / size), jax.random.normal(
    noise_key, dtype=jnp.float32
  )
