"""Runs of paper 1's small learners, with many seeds in parallel."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.environments import chain as chain_lib
from explorax.environments import jax_types
from explorax.exploration import types as exploration_types
from explorax.papers import types
from explorax.papers.tabular import q_learning, training
from explorax.papers.tabular import types as tabular_types

PAPER = "Dabney et al. (2021), Temporally-extended ε-greedy exploration"
# The two rules that the figures compare, in the order of their lines.
LABELS = {"epsilon": "ε-greedy", "ez": "εz-greedy"}
RULES = tuple(LABELS)


def make_rule(
  name: str, epsilon: float, ties: str = "random"
) -> exploration_types.Rule:
  """`epsilon` or `ez`, the latter with the paper's zeta law: μ = 2, up to 10 000."""
  rules = {"epsilon": exploration.EpsilonGreedy, "ez": exploration.EzGreedy}
  return rules[name](epsilon, of=exploration.Greedy(ties=ties))


def make_law(settings: types.Settings, epsilon: float) -> exploration.EzGreedy:
  """εz-greedy with the law of durations of the settings, longest `cap`."""
  x, cap = settings["parameter"], settings["cap"]
  if settings["law"] == "zeta":
    duration: exploration.Duration = exploration.ZetaDuration(x, cap)
  elif settings["law"] == "exponential":
    duration = exploration.ExponentialDuration(x, cap)
  else:
    duration = exploration.UniformDuration(int(x))
  return exploration.EzGreedy(epsilon, duration=duration)


class FixedParams(NamedTuple):
  """The parameters of `Fixed`: γ, by which returns are discounted."""

  discount: float = 1.0


@dataclasses.dataclass(frozen=True)
class Fixed:
  """A "learner" that does not learn: the same action is greedy in all states.

  Figure 1's greedy policy always goes down. With ε = 1, the greedy action has no
  effect.
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
class Cell:
  """The cell of a state, int32 `[]`: a `training.Reading`.

  A dataclass with equality, so that equal cells are compiled once.
  """

  of: Callable[[Any, int], jax.Array]  # A module's: (state, size) → index.
  size: int = 0  # Columns, or cells along a side.

  def __call__(self, state: Any, observation: jax.Array) -> jax.Array:
    del observation
    return self.of(state, self.size)


def in_grid(state: Any, size: int) -> jax.Array:
  """The cell of a gridworld's position, in reading order."""
  return state.position[0] * size + state.position[1]


def in_deep_sea(state: Any, size: int) -> jax.Array:
  """The cell of a position in the deep sea; N² or above after an episode's end."""
  return state.row * size + state.column


def in_chain(state: Any, size: int) -> jax.Array:
  """The cell of a chain's state; the chain's length after an episode's end."""
  del size
  return state.position


class Problem(NamedTuple):
  """An environment for learning or exploration, and the learner."""

  environment: jax_types.Environment
  learner: tabular_types.Learner
  learner_params: tabular_types.Params
  cell: Cell  # Maps of first visits have one value per cell.
  num_cells: int  # C.
  shortest_episode: int  # The least number of steps in an episode.
  params: jax_types.Params | None = None  # The environment's; None: the default ones.
  # Seed → the parameters of its own environment, instead of `params`.
  own_params: Callable[[int], jax_types.Params] | None = None
  options: Mapping[str, Any] = {}  # More of `training.run_seeds`, for learning.


def chain(size: int, step_size: float = 1.0, discount: float = 1.0) -> Problem:
  """A chain with Q-learning."""
  cell = Cell(in_chain)
  return Problem(
    chain_lib.Chain(size),
    q_learning.QLearning(size, 2),
    q_learning.Params(step_size, discount),
    cell,
    size,
    shortest_episode=1,
    options={"observe": cell},
  )


def learn(
  problem: Problem,
  rule: exploration_types.Rule,
  seeds: Sequence[int],
  num_episodes: int,
) -> types.Results:
  """Learns with S seeds for E episodes; the seeds' results are independent.

  Returns:
    `returns`, `discounted_returns`, `lengths` `[S, E]`, and `episodes`, `steps` and
    `stopped` `[S]`, as in `training.Record`. `found` bool `[S]`: whether an episode's
    return was positive; `first_found` int `[S]`: the number of the first such episode,
    or `episodes` if there was none.
  """
  params = _params(problem)
  if problem.own_params is not None:
    own = [problem.own_params(seed) for seed in seeds]
    params = jax.tree.map(lambda *x: np.stack(x), *own)
  record = training.run_seeds(
    problem.learner,
    rule,
    problem.environment,
    problem.learner_params,
    params,
    _keys(seeds),
    num_episodes=num_episodes,
    environment_per_seed=problem.own_params is not None,
    **problem.options,
  )
  names = ["returns", "discounted_returns", "lengths", "episodes", "steps", "stopped"]
  results = {name: np.asarray(getattr(record, name)) for name in names}
  positive = results["returns"] > 0
  found = positive.any(axis=1)
  first = np.where(found, positive.argmax(axis=1) + 1, results["episodes"])
  return {**results, "found": found, "first_found": first}


def wander(
  problem: Problem,
  rule: exploration_types.Rule,
  seeds: Sequence[int],
  num_steps: int,
  *,
  greedy_action: int = 0,
  pairs: bool = False,
) -> types.Results:
  """Explores without learning, and records the first visit of each cell.

  As in appendix D, a cell's first visit is the first step of a trial at which the agent
  is in the cell, or the number of steps if there is none. A trial has `num_steps` steps
  in several episodes. The same action is greedy in all states.

  Returns:
    `first_visits` int32 and `visited` bool, `[S, C]`, or `[S, C, A]` for pairs of cells
    and actions.
  """
  record = training.run_seeds(
    Fixed(problem.environment.num_actions, greedy_action),
    rule,
    problem.environment,
    FixedParams(),
    _params(problem),
    _keys(seeds),
    num_episodes=num_steps // problem.shortest_episode + 1,
    max_steps=num_steps,
    cell=problem.cell,
    num_cells=problem.num_cells,
    pairs=pairs,
  )
  return {
    "first_visits": np.asarray(record.first_visits),
    "visited": np.asarray(record.visited),
  }


def _params(problem: Problem) -> jax_types.Params:
  if problem.params is None:
    return problem.environment.default_params()
  return problem.params


def _keys(seeds: Sequence[int]) -> jax.Array:
  key = jax.random.key(0)
  return jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.asarray(seeds))
