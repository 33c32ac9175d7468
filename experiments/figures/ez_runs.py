"""Paper 1's small experiments: runs of its learners, and what all its figures share."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents.tabular import training
from explorax.agents.tabular import types as tabular_types
from explorax.environments import jax_types
from explorax.experiments.figures import types
from explorax.experiments.recording import drawing, statistics
from explorax.exploration import types as exploration_types

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes

PAPER = "Dabney et al. (2021), Temporally-extended ε-greedy exploration"
# The two rules that the figures compare, in the order of their lines.
LABELS = {"epsilon": "ε-greedy", "ez": "εz-greedy"}
RULES = tuple(LABELS)


def make_rule(name: str, epsilon: float) -> exploration_types.Rule:
  """`epsilon` or `ez`, the latter with the paper's zeta law: μ = 2, up to 10 000."""
  if name == "epsilon":
    return exploration.EpsilonGreedy(epsilon)
  return exploration.EzGreedy(epsilon)


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
  seeds: tuple[int, int],
  num_episodes: int,
  environment_params: jax_types.Params | None = None,
  own_params: Sequence[jax_types.Params] = (),
  stop_return: float = float("inf"),
  observe: training.Reading | None = None,
  sequential: bool = False,
) -> types.Results:
  """Learns with several seeds.

  Args:
    environment: where.
    learner: what learns.
    learner_params: its parameters.
    rule: chooses the actions.
    seeds: the first one, and the one after the last. What a seed gives does not depend
      on which others there are.
    num_episodes: E.
    environment_params: the default ones, if None.
    own_params: the parameters of each seed's own environment, instead.
    stop_return: see `training.run`, here and below.
    observe: what the learner sees.
    sequential: see `training.run_seeds`.

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
    stop_return=stop_return,
    observe=observe,
    sequential=sequential,
    environment_per_seed=bool(own_params),
  )
  names = ["returns", "discounted_returns", "lengths", "episodes", "steps", "stopped"]
  return {name: np.asarray(getattr(record, name)) for name in names}


def wander(
  environment: jax_types.Environment,
  rule: exploration_types.Rule,
  cell: training.Reading,
  num_cells: int,
  *,
  num_seeds: int,
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
    num_seeds: trials.
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
    _keys((0, num_seeds)),
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


def _keys(seeds: tuple[int, int]) -> jax.Array:
  key = jax.random.key(0)
  return jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.arange(*seeds))


def check_at_least(config: Any, **least: float) -> None:
  """Refuses a config whose fields are below these.

  Raises:
    ValueError: a sentence that names the field.
  """
  for name, minimum in least.items():
    values = getattr(config, name)
    for value in values if isinstance(values, tuple) else (values,):
      if not value >= minimum:
        raise ValueError(f"{name} has {value}; it must be at least {minimum}.")


def check_shares(config: Any, *names: str) -> None:
  """Refuses a config whose fields of these names are not all in [0, 1].

  Raises:
    ValueError: a sentence that names the field.
  """
  for name in names:
    values = getattr(config, name)
    for value in values if isinstance(values, tuple) else (values,):
      if not 0 <= value <= 1:
        raise ValueError(f"{name} has {value}; it must be from 0 to 1.")


def check_not_empty(config: Any, *names: str) -> None:
  """Refuses a config whose tuples of these names are empty or repeat themselves.

  Raises:
    ValueError: a sentence that names the field.
  """
  for name in names:
    values = getattr(config, name)
    if not values or len(set(values)) < len(values):
      raise ValueError(f"{name} is {values}; give one or more, each of them once.")


def blocks(values: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
  """Means over consecutive episodes, so that curves of many episodes can be read.

  Args:
    values: `[S, E]`.
    num: blocks; as many as there are episodes if those are fewer.

  Returns:
    The middle of each block, counting episodes from 1, and the means `[S, num]`.
  """
  parts = np.array_split(np.arange(values.shape[1]), min(num, values.shape[1]))
  x = np.array([part.mean() + 1 for part in parts])
  return x, np.stack([values[:, part].mean(axis=1) for part in parts], axis=1)


def curves(
  axes: "mpl_axes.Axes", values: Mapping[str, np.ndarray], num_blocks: int = 50
) -> None:
  """Draws each rule's learning curve, from its `[S, E]` discounted returns."""
  for index, (name, returns) in enumerate(values.items()):
    x, means = blocks(returns, num_blocks)
    drawing.curve(axes, x, means, label=LABELS.get(name, name), index=index)
  axes.set(xlabel="episode", ylabel="discounted return")
  axes.grid(alpha=0.3)


def maps(
  axes: np.ndarray, values: Sequence[np.ndarray], titles: Sequence[str], label: str
) -> None:
  """Draws maps `[H, W]` on one scale, whose bar is beside the last of them."""
  low = min(np.nanmin(v) for v in values)
  high = max(np.nanmax(v) for v in values)
  image = None
  for ax, value, title in zip(axes.flat, values, titles, strict=True):
    image = ax.imshow(
      value, cmap="cividis", vmin=low, vmax=high, interpolation="nearest", aspect="auto"
    )
    ax.set_title(title, fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
  bar = axes.flat[0].figure.colorbar(image, ax=list(axes.flat), pad=0.01)
  bar.set_label(label, fontsize="small")


def gap(
  a: np.ndarray, b: np.ndarray, statistic: Any = statistics.mean_over_seeds
) -> tuple[statistics.Interval, str]:
  """`a` less `b`, `[S]` each: the interval, and it in words."""
  interval = statistics.difference(a, b, statistic)
  words = f"{interval.value:+.3g} [{interval.low:.3g}, {interval.high:.3g}]"
  return interval, words


def one(done: Sequence[types.Done], **settings: Any) -> types.Results:
  """The results of the one task that has these settings."""
  (task,) = types.select(done, **settings)
  return task.results
