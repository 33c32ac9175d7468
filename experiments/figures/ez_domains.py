"""Paper 1's small domains, each with its learner: appendix B's settings."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents.tabular import fourier, q_learning, sarsa
from explorax.environments import deep_sea, grid_maps, gridworld, mountain_car
from explorax.experiments.figures import ez_runs, types

_TIE_STD = 1e-6  # Of the initial values where ties are fixed: far below any reward.


@dataclasses.dataclass(frozen=True)
class DeepSea:
  """Q-learning in the deep sea, until the treasure is found for the first time.

  Values begin at 0, and ties are broken at random.

  Only steps to the right cost, as in bsuite: if all did, values of 0 at the start would
  be optimistic, and lead greedy actions to whatever was not tried yet.
  """

  size: int = 20  # N.
  episodes: int = 20_000  # At most (our own).
  step_size: float = 1.0  # α.
  discount: float = 0.99  # γ (our own).
  map_steps: int = 100_000  # Of a trial of the map of first visits (our own).

  label: ClassVar[str] = "DeepSea"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")

  def __post_init__(self):
    ez_runs.check_at_least(self, size=2, episodes=1, map_steps=2)
    ez_runs.check_shares(self, "step_size", "discount")

  @property
  def epsilon(self) -> float:
    """Appendix B."""
    return 1 / (self.size + 1)

  def learn(
    self, rule: str, seeds: tuple[int, int], permuted: bool = False
  ) -> types.Results:
    """`episodes` to the first treasure, and `stopped`, whether there was one.

    Where `permuted`, seed s has the actions' effects of mapping s.
    """
    environment = deep_sea.DeepSea(self.size)
    params = environment.default_params()
    results = ez_runs.learn(
      environment,
      q_learning.QLearning(self.size**2, 2),
      q_learning.Params(self.step_size, self.discount),
      ez_runs.make_rule(rule, self.epsilon),
      seeds=seeds,
      num_episodes=self.episodes,
      own_params=[
        params._replace(right=deep_sea.action_mapping(seed, self.size))
        for seed in range(*seeds)
      ]
      if permuted
      else (),
      # Only the treasure makes a return positive.
      stop_return=0.5,
      observe=ez_runs.DeepSeaCell(self.size),
    )
    return {name: results[name] for name in ("episodes", "stopped")}

  def wander(self, rule: str, num_seeds: int) -> types.Results:
    return ez_runs.wander(
      deep_sea.DeepSea(self.size),
      ez_runs.make_rule(rule, 1.0),
      ez_runs.DeepSeaCell(self.size),
      self.size**2,
      num_seeds=num_seeds,
      num_steps=self.map_steps,
      shortest_episode=self.size,
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """The logarithm, as in figure 3; nothing above the diagonal."""
    values = np.log(values.reshape(self.size, self.size) + 1.0)
    return np.where(np.tri(self.size, dtype=bool), values, np.nan)


@dataclasses.dataclass(frozen=True)
class GridWorld:
  """Q-learning in the open gridworld.

  The paper does not say how actions of equal values are told apart, and it matters.
  "random" ties, values beginning at 0, are drawn at each step, as this project's rules
  do: an agent that knows nothing walks at random, whatever its ε. With "fixed" ones
  each state has a favourite action, drawn once for each seed, until it learns better:
  values begin at ~ N(0, 10⁻¹²). Neither was seen to give all that the paper reports:
  over 30 seeds εz-greedy was not ahead beyond doubt with either, and with noise of 0.3
  ε-greedy earned more than without if ties were random (0.197 against 0.158), not if
  they were fixed (0.055 against 0.058).
  """

  size: int = 20  # Rows and columns (figure 11; figure 3 is silent).
  episodes: int = 100  # Appendix F, of the main text's figure.
  step_size: float = 0.1  # α.
  epsilon: float = 0.1
  discount: float = 0.99  # γ (our own).
  ties: str = "random"  # Or "fixed" (our own reading).
  time_limit: int = 1000  # Steps of an episode.
  map_steps: int = 5000  # Of a trial of the map of first visits (our own).

  label: ClassVar[str] = "GridWorld"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")

  def __post_init__(self):
    ez_runs.check_at_least(self, size=5, episodes=1, time_limit=1, map_steps=2)
    ez_runs.check_shares(self, "step_size", "epsilon", "discount")
    if self.ties not in ("fixed", "random"):
      raise ValueError(f"ties is {self.ties!r}; use 'fixed' or 'random'.")

  def learn(
    self,
    rule: str,
    seeds: tuple[int, int],
    noise: float = 0.0,
    maps: Sequence[grid_maps.Map] = (),
  ) -> types.Results:
    """Everything of `ez_runs.learn`, in each seed's own map if those are given."""
    environment = gridworld.GridWorld(self.size)
    params = environment.default_params()._replace(
      time_limit=self.time_limit, noise=noise
    )
    spread = _TIE_STD if self.ties == "fixed" else 0.0
    return ez_runs.learn(
      environment,
      q_learning.QLearning(self.size**2, 4),
      q_learning.Params(self.step_size, self.discount, initial_std=spread),
      ez_runs.make_rule(rule, self.epsilon),
      seeds=seeds,
      num_episodes=self.episodes,
      environment_params=params,
      own_params=[params._replace(**own._asdict()) for own in maps],
      observe=ez_runs.GridCell(self.size),
    )

  def wander(self, rule: str, num_seeds: int) -> types.Results:
    return ez_runs.wander(
      gridworld.GridWorld(self.size),
      ez_runs.make_rule(rule, 1.0),
      ez_runs.GridCell(self.size),
      self.size**2,
      num_seeds=num_seeds,
      num_steps=self.map_steps,
      shortest_episode=self.size,  # From the start to the goal are more steps yet.
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    return values.reshape(self.size, self.size)


@dataclasses.dataclass(frozen=True)
class MountainCar:
  """SARSA(λ) on a Fourier basis in the sparse MountainCar."""

  episodes: int = 1000  # Figure 8's caption.
  order: int = 5  # Of the Fourier basis.
  step_size: float = 0.005  # α, of all features alike (the paper is silent).
  epsilon: float = 0.05
  discount: float = 0.99  # γ.
  trace_decay: float = 0.9  # λ.
  time_limit: int = 5000  # Steps of an episode.
  map_steps: int = 5000  # Of a trial of the map of first visits (our own).
  map_cells: int = 20  # Of position, and of velocity (our own; the table is lost).

  label: ClassVar[str] = "MountainCar"
  map_axes: ClassVar[tuple[str, str]] = ("position", "velocity")

  def __post_init__(self):
    ez_runs.check_at_least(
      self, episodes=1, order=1, step_size=0, time_limit=1, map_steps=2, map_cells=2
    )
    ez_runs.check_shares(self, "epsilon", "discount", "trace_decay")

  def learn(
    self, rule: str, seeds: tuple[int, int], noise: float = 0.0
  ) -> types.Results:
    low, high = mountain_car.POSITIONS
    speed = mountain_car.MAX_SPEED
    basis = fourier.FourierBasis(self.order, (low, -speed), (high, speed))
    return ez_runs.learn(
      mountain_car.MountainCar(),
      sarsa.SarsaLambda(basis, 3),
      sarsa.Params(self.step_size, self.discount, self.trace_decay),
      ez_runs.make_rule(rule, self.epsilon),
      seeds=seeds,
      num_episodes=self.episodes,
      environment_params=mountain_car.Params(noise, self.time_limit),
    )

  def wander(self, rule: str, num_seeds: int) -> types.Results:
    return ez_runs.wander(
      mountain_car.MountainCar(),
      ez_runs.make_rule(rule, 1.0),
      MountainCarCell(self.map_cells),
      self.map_cells**2,
      num_seeds=num_seeds,
      num_steps=self.map_steps,
      # 0.9 from the start to the goal, at a speed of at most 0.07.
      shortest_episode=13,
      environment_params=mountain_car.Params(0.0, self.time_limit),
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """Position from left to right, velocity from below."""
    return values.reshape(self.map_cells, self.map_cells)[::-1]


@dataclasses.dataclass(frozen=True)
class MountainCarCell:
  """The cell of velocity (its rows) and position; see `ez_runs.GridCell`."""

  cells: int

  def __call__(self, state: Any, observation: jax.Array) -> jax.Array:
    del observation
    low, high = mountain_car.POSITIONS
    speed = mountain_car.MAX_SPEED
    column = bin_of(state.position, low, high, self.cells)
    return bin_of(state.velocity, -speed, speed, self.cells) * self.cells + column


def bin_of(x: jax.Array, low: float, high: float, num: int) -> jax.Array:
  """Which of `num` bins of one width x is in, int32; beyond them, the nearest."""
  return jnp.clip((x - low) / (high - low) * num, 0, num - 1).astype(jnp.int32)
