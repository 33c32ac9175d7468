"""Runs of paper 1's small learners, of many seeds side by side."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents.tabular import training
from explorax.agents.tabular import types as tabular_types
from explorax.environments import jax_types
from explorax.experiments.figures import types
from explorax.exploration import types as exploration_types

PAPER = "Dabney et al. (2021), Temporally-extended ε-greedy exploration"
# The two rules that the figures compare, in the order of their lines.
LABELS = {"epsilon": "ε-greedy", "ez": "εz-greedy"}
RULES = tuple(LABELS)


def make_rule(name: str, epsilon: float) -> exploration_types.Rule:
  """`epsilon` or `ez`, the latter with the paper's zeta law: μ = 2, up to 10 000."""
  if name == "epsilon":
    return exploration.EpsilonGreedy(epsilon)
  return exploration.EzGreedy(epsilon)


def make_law(
  law: str, parameter: float, *, epsilon: float, cap: int
) -> exploration.EzGreedy:
  """εz-greedy with one of the laws of durations `zeta`, `exponential` and `uniform`.

  Args:
    law: its name.
    parameter: μ, λ or N.
    epsilon: of the rule.
    cap: the longest duration; of the uniform law, N is.
  """
  if law == "zeta":
    duration: exploration.Duration = exploration.ZetaDuration(parameter, cap)
  elif law == "exponential":
    duration = exploration.ExponentialDuration(parameter, cap)
  else:
    duration = exploration.UniformDuration(int(parameter))
  return exploration.EzGreedy(epsilon, duration=duration)


class FixedParams(NamedTuple):
  """The parameters of `Fixed`: γ, by which returns are discounted."""

  discount: float = 1.0


@dataclasses.dataclass(frozen=True)
class Fixed:
  """A "learner" that learns nothing: one action is the greedy one everywhere.

  Figure 1's greedy policy always goes down; and where ε = 1, none matters.
  """

  num_actions: int
  action: int = 0
  num_members: int = 1

  on_policy = False

  def init(self, key: jax.Array, params: FixedParams) -> tuple[()]:
    del key, params
    return ()

  def begin_episode(self, state: tuple[()]) -> tuple[()]:
    return state

  def encode(self, observation: jax.Array) -> jax.Array:
    del observation
    return jnp.int32(0)

  def q_values(self, state: tuple[()], encoded: jax.Array) -> jax.Array:
    del state, encoded
    return jax.nn.one_hot(jnp.full((1,), self.action), self.num_actions)

  def update(self, state: tuple[()], transition: Any) -> tuple[()]:
    del transition
    return state


@dataclasses.dataclass(frozen=True)
class GridCell:
  """The index, in reading order, of a gridworld's position; a `training.Reading`.

  Here and below: equal readings are equal, so that they are compiled once.
  """

  columns: int

  def __call__(self, state: Any, observation: jax.Array) -> jax.Array:
    del observation
    return state.position[0] * self.columns + state.position[1]


@dataclasses.dataclass(frozen=True)
class DeepSeaCell:
  """The index of a position in the deep sea; N² or above after an episode's end."""

  size: int  # N.

  def __call__(self, state: Any, observation: jax.Array) -> jax.Array:
    del observation
    return state.row * self.size + state.column


@dataclasses.dataclass(frozen=True)
class ChainCell:
  """The state of a chain; its size after an episode's end."""

  def __call__(self, state: Any, observation: jax.Array) -> jax.Array:
    del observation
    return state.position


def learn(
  environment: jax_types.Environment,
  learner: tabular_types.Learner,
  learner_params: tabular_types.Params,
  rule: exploration_types.Rule,
  *,
  seeds: Sequence[int],
  num_episodes: int,
  environment_params: jax_types.Params | None = None,
  own_params: Sequence[jax_types.Params] = (),
  **options: Any,
) -> types.Results:
  """Learns with several seeds.

  Args:
    environment: where.
    learner: what learns.
    learner_params: its parameters.
    rule: chooses the actions.
    seeds: what a seed gives does not depend on which others there are.
    num_episodes: E.
    environment_params: the default ones, if None.
    own_params: the parameters of each seed's own environment, instead.
    **options: of `training.run_seeds`.

  Returns:
    `returns`, `discounted_returns`, `lengths` `[S, E]`, and `episodes`, `steps` and
    `stopped` `[S]`, as in `training.Record`.
  """
  if own_params:
    environment_params = jax.tree.map(lambda *x: np.stack(x), *own_params)
  elif environment_params is None:
    environment_params = environment.default_params()
  record = training.run_seeds(
    learner,
    rule,
    environment,
    learner_params,
    environment_params,
    _keys(seeds),
    num_episodes=num_episodes,
    environment_per_seed=bool(own_params),
    **options,
  )
  names = ["returns", "discounted_returns", "lengths", "episodes", "steps", "stopped"]
  return {name: np.asarray(getattr(record, name)) for name in names}


def wander(
  environment: jax_types.Environment,
  rule: exploration_types.Rule,
  cell: training.Reading,
  num_cells: int,
  *,
  seeds: Sequence[int],
  num_steps: int,
  shortest_episode: int,
  greedy_action: int = 0,
  environment_params: jax_types.Params | None = None,
  pairs: bool = False,
) -> types.Results:
  """Explores without learning, and notes when each cell is first visited.

  This is appendix D: a cell's first visit is the number of the step at which it was
  first seen in a trial, and the greatest number of steps where it never was.

  Args:
    environment: where.
    rule: chooses the actions.
    cell: a cell's index; see `training.run`.
    num_cells: how many there are.
    seeds: of the trials.
    num_steps: of a trial, over as many episodes as they fill.
    shortest_episode: steps that any episode has at least.
    greedy_action: what is greedy, everywhere.
    environment_params: the default ones, if None.
    pairs: note pairs of cells and actions.

  Returns:
    `first_visits` int32 and `visited` bool, `[S, C]`, or `[S, C, A]` for pairs.
  """
  record = training.run_seeds(
    Fixed(environment.num_actions, greedy_action),
    rule,
    environment,
    FixedParams(),
    environment.default_params() if environment_params is None else environment_params,
    _keys(seeds),
    num_episodes=num_steps // shortest_episode + 1,
    max_steps=num_steps,
    cell=cell,
    num_cells=num_cells,
    pairs=pairs,
  )
  return {
    "first_visits": np.asarray(record.first_visits),
    "visited": np.asarray(record.visited),
  }


def _keys(seeds: Sequence[int]) -> jax.Array:
  key = jax.random.key(0)
  return jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.asarray(seeds))
