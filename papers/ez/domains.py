"""Paper 1's small domains with their learners, and the settings of appendix B."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges
from explorax.environments import (
  cartpole_swingup,
  deep_sea,
  grid_maps,
  gridworld,
  jax_types,
  mountain_car,
)
from explorax.papers import types
from explorax.papers.ez import runs
from explorax.papers.tabular import fourier, q_learning, sarsa

_TIE_STD = 1e-6  # Of initial values for fixed ties: far below any reward.
_RETURNS = ("returns", "discounted_returns")  # `[S, E]`, of learning.
TIES = ("first", "fixed", "random")  # How GridWorld breaks ties between equal values.
WORLDS = ("obstacles", "traps")  # A world has one of the two.


@dataclasses.dataclass(frozen=True)
class DeepSea(ranges.Checked):
  """Q-learning in the deep sea, until the greedy policy is optimal.

  Initial values are 0. Ties are broken at random, or by the first index, which is left:
  then only exploratory actions go right, and the episodes that ε-greedy needs grow as
  (2(N + 1))^N instead of about 2^N. The results of learning are `episodes`, until the
  greedy policy goes to the treasure, `stopped`, whether it does, `first_found`, the
  episode that finds the treasure for the first time, and `found`, whether one does.

  Only steps to the right have a cost, as in bsuite. If all steps had one, initial
  values of 0 would be optimistic, and greedy actions would try everything untried.
  """

  size: types.Size = 20  # N.
  episodes: ranges.PositiveInt = 100_000  # At most (our own).
  step_size: ranges.Probability = 1.0  # α.
  discount: ranges.Probability = 0.99  # γ (our own).
  ties: Literal["random", "first"] = "random"
  permuted: bool = False  # Seed s uses action mapping s.
  # Steps of a trial of the map of first visits. Its scale, log(E + 1) in [0, 16]
  # (appendix B), ends at e¹⁶, 9 million steps, for cells that are never visited.
  map_steps: types.Size = 9_000_000

  label: ClassVar[str] = "DeepSea"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")
  kept: ClassVar[tuple[str, ...]] = ("episodes", "stopped", "first_found", "found")

  @property
  def epsilon(self) -> float:
    """Appendix B."""
    return 1 / (self.size + 1)

  def problem(self) -> runs.Problem:
    environment = deep_sea.DeepSea(self.size, permuted=False)
    params, cell = environment.default_params(), runs.Cell(runs.in_deep_sea, self.size)

    def permute(seed: int) -> jax_types.Params:
      return params._replace(right=deep_sea.action_mapping(seed, self.size))

    return runs.Problem(
      environment,
      q_learning.QLearning(self.size**2, 2),
      q_learning.Params(self.step_size, self.discount),
      cell,
      self.size**2,
      shortest_episode=self.size,
      params=params,
      own_params=permute if self.permuted else None,
      options={"stop": GoesToTreasure(self.size), "observe": cell},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """The logarithm, as in figure 3; cells above the diagonal are empty."""
    values = np.log(_square(values) + 1.0)
    return np.where(np.tri(self.size, dtype=bool), values, np.nan)


@dataclasses.dataclass(frozen=True)
class GoesToTreasure:
  """Whether the greedy policy of a table goes right on the whole diagonal."""

  size: int

  def __call__(self, state: q_learning.State, params: deep_sea.Params) -> jax.Array:
    diagonal = jnp.arange(self.size)
    q = state.table[0, diagonal * (self.size + 1)]
    right = jnp.asarray(params.right)[diagonal, diagonal]
    return jnp.all(q[diagonal, right] > q[diagonal, 1 - right])


@dataclasses.dataclass(frozen=True)
class GridWorld(ranges.Checked):
  """Q-learning in the gridworld.

  Tie-breaking matters, since all values are equal until the goal is found. The paper
  permits three readings (`TIES`):

  - "first": the lowest index, the usual implementation of the pseudo-code's `arg max`.
    In states without information this is left.
  - "fixed": each state prefers one action, drawn once per seed, until it learns other
    values; initial values are ~ N(0, 10⁻¹²). Unlike "first", this does not favour the
    same direction in all states, which matters if start and goal are the same in all
    runs.
  - "random": drawn at each step, the default of the rules in this project. Before it
    learns anything, an agent then walks at random, whatever its ε: exploration that
    neither ε-greedy nor εz-greedy has in the paper.
  """

  size: Annotated[int, ranges.Range(ge=5)] = (
    20  # Rows and columns (figure 11; not in figure 3).
  )
  episodes: ranges.PositiveInt = 100  # Appendix F, of the main text's figure.
  step_size: ranges.Probability = 0.1  # α.
  epsilon: ranges.Probability = 0.1
  discount: ranges.Probability = 0.99  # γ (our own).
  ties: Literal["first", "fixed", "random"] = "fixed"
  noise: ranges.Probability = (
    0.0  # The probability of going to a random neighbour instead.
  )
  # One of `WORLDS`: each seed has its own map (`draw_map`); "" is the open room.
  world: Literal["", "obstacles", "traps"] = ""
  density: float = 0.0  # Of the world's obstacles or traps.
  time_limit: ranges.PositiveInt = 1000  # Steps of an episode.
  map_steps: types.Size = 5000  # Of a trial of the map of first visits (our own).

  label: ClassVar[str] = "GridWorld"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")
  kept: ClassVar[tuple[str, ...]] = _RETURNS

  def problem(self) -> runs.Problem:
    environment, cell = (
      gridworld.GridWorld(self.size),
      runs.Cell(runs.in_grid, self.size),
    )
    params = environment.default_params()._replace(
      time_limit=self.time_limit, noise=self.noise
    )
    spread = _TIE_STD if self.ties == "fixed" else 0.0

    def own_world(seed: int) -> jax_types.Params:
      own = draw_map(self.world, self.density, self.size, seed)
      return params._replace(**own._asdict())

    return runs.Problem(
      environment,
      q_learning.QLearning(self.size**2, 4),
      q_learning.Params(self.step_size, self.discount, initial_std=spread),
      cell,
      self.size**2,
      shortest_episode=self.size,  # The goal is farther.
      params=params,
      own_params=own_world if self.world else None,
      options={"observe": cell},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    return _square(values)


def draw_map(world: str, density: float, size: int, seed: int) -> grid_maps.Map:
  """The world of a seed, number seed + 1, the same for every agent.

  A seed's worlds are nested: a denser world contains all obstacles or traps of a
  sparser one.
  """
  densities = dict.fromkeys(WORLDS, 0.0) | {world: density}
  return grid_maps.draw(size, **densities, world=seed + 1)


@dataclasses.dataclass(frozen=True)
class MountainCar(ranges.Checked):
  """SARSA(λ) on a Fourier basis in the sparse MountainCar."""

  episodes: ranges.PositiveInt = 1000  # Figure 8's caption.
  order: ranges.PositiveInt = 5  # Of the Fourier basis.
  step_size: ranges.NonNegativeFloat = (
    0.005  # α, the same for all features (not in the paper).
  )
  epsilon: ranges.Probability = 0.05
  discount: ranges.Probability = 0.99  # γ.
  trace_decay: ranges.Probability = 0.9  # λ.
  noise: ranges.NonNegativeFloat = 0.0  # The variance of the force.
  time_limit: ranges.PositiveInt = 5000  # Steps of an episode.
  map_steps: types.Size = 5000  # Of a trial of the map of first visits (our own).
  map_cells: types.Size = (
    20  # Per axis: position and velocity (our own; the table is lost).
  )

  label: ClassVar[str] = "MountainCar"
  map_axes: ClassVar[tuple[str, str]] = (
    "position, −1.2 to 0.5",
    "velocity, −0.07 to 0.07",
  )
  kept: ClassVar[tuple[str, ...]] = _RETURNS

  def problem(self) -> runs.Problem:
    low, high = mountain_car.POSITIONS
    speed = mountain_car.MAX_SPEED
    basis = fourier.FourierBasis(self.order, (low, -speed), (high, speed))
    return runs.Problem(
      mountain_car.MountainCar(),
      sarsa.SarsaLambda(basis, 3),
      sarsa.Params(self.step_size, self.discount, self.trace_decay),
      runs.Cell(in_mountain_car, self.map_cells),
      self.map_cells**2,
      # 0.9 from the start to the goal, at a speed of at most 0.07.
      shortest_episode=13,
      params=mountain_car.Params(self.noise, self.time_limit),
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """Position from left to right, velocity from below."""
    return _square(values)[::-1]


def in_mountain_car(state: Any, cells: int) -> jax.Array:
  """The cell of velocity (its rows) and position; see `runs.Cell`."""
  low, high = mountain_car.POSITIONS
  speed = mountain_car.MAX_SPEED
  column = _bin_of(state.position, low, high, cells)
  return _bin_of(state.velocity, -speed, speed, cells) * cells + column


@dataclasses.dataclass(frozen=True)
class CartPole(ranges.Checked):
  """SARSA(λ) on a Fourier basis in the sparse swing-up.

  The paper says "an order 7 Fourier basis" of five numbers. The full basis, with all
  elements of c up to 7, has 32 768 features. With the same α for all of them, the
  weights diverge, so that each step size is divided by ‖c‖ (Konidaris et al., 2011).
  The initial weights give values with a standard deviation of 4, while a step earns at
  most 1; neither rule learnt in our runs. The basis with Σ_i c_i ≤ 7 has 792 features,
  and works with all the paper's numbers unchanged.
  """

  # All features, or only those of a total order up to `order`.
  basis: Literal["full", "total"] = "full"
  episodes: ranges.PositiveInt = 300  # The paper's text gives no number: our own.
  order: ranges.PositiveInt = 7  # Of the Fourier basis.
  step_size: ranges.NonNegativeFloat = 0.0005  # α.
  epsilon: ranges.Probability = 0.01
  discount: ranges.Probability = 0.99  # γ.
  trace_decay: ranges.Probability = 0.7  # λ.
  initial_variance: ranges.NonNegativeFloat = 0.001  # Of the weights.
  time_limit: ranges.PositiveInt = 1000  # Steps of an episode.
  map_steps: types.Size = 10_000  # Of a trial of the map of first visits (our own).
  map_cells: types.Size = (
    20  # Per axis: the pole's angle and the cart's position (our own).
  )

  label: ClassVar[str] = "CartPole"
  map_axes: ClassVar[tuple[str, str]] = (
    "place, −1.8 to 1.8 m",
    "angle, −π to π (0: upright)",
  )
  kept: ClassVar[tuple[str, ...]] = _RETURNS
  # Bounds of (x, cos θ, sin θ, dx/dt, dθ/dt): the slider's end, and speeds that a
  # swing-up rarely exceeds (our own; not in the paper).
  bounds: ClassVar[tuple[float, ...]] = (
    *(cartpole_swingup.SLIDER_END, 1.0, 1.0),
    *(5.0, 10.0),
  )

  @property
  def features(self) -> fourier.FourierBasis:
    low = tuple(-x for x in self.bounds)
    total = self.basis == "total"
    return fourier.FourierBasis(self.order, low, self.bounds, total_order=total)

  def problem(self) -> runs.Problem:
    scaled, num_actions = self.basis == "full", len(cartpole_swingup.CONTROLS)
    spread = math.sqrt(self.initial_variance)
    return runs.Problem(
      cartpole_swingup.CartpoleSwingup(),
      sarsa.SarsaLambda(self.features, num_actions, scale_steps=scaled),
      sarsa.Params(self.step_size, self.discount, self.trace_decay, spread),
      runs.Cell(in_cartpole, self.map_cells),
      self.map_cells**2,
      shortest_episode=self.time_limit,
      params=jax_types.TimeLimit(self.time_limit),
      # The weights of one seed fill a CPU's caches; an accelerator can run many seeds.
      options={"sequential": (scaled and jax.default_backend() == "cpu") or None},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """Position from left to right, angle from −π (hanging) below to π above."""
    return _square(values)[::-1]


def in_cartpole(state: Any, cells: int) -> jax.Array:
  """The cell of the angle (its rows) and the position; see `runs.Cell`."""
  x, angle = state.position
  end = cartpole_swingup.SLIDER_END
  wrapped = jnp.arctan2(jnp.sin(angle), jnp.cos(angle))
  row = _bin_of(wrapped, -math.pi, math.pi, cells)
  return row * cells + _bin_of(x, -end, end, cells)


def _bin_of(x: jax.Array, low: float, high: float, num: int) -> jax.Array:
  """The index of x in `num` bins of equal width, int32; clipped to the bins."""
  return jnp.clip((x - low) / (high - low) * num, 0, num - 1).astype(jnp.int32)


def _square(values: np.ndarray) -> np.ndarray:
  """`[C²]` → `[C, C]`."""
  side = math.isqrt(values.size)
  return values.reshape(side, side)


# -- tasks ------------------------------------------------------------------------

Domain = DeepSea | GridWorld | MountainCar | CartPole
DOMAINS: dict[str, type[Domain]] = {
  "deep_sea": DeepSea,
  "gridworld": GridWorld,
  "mountain_car": MountainCar,
  "cartpole": CartPole,
}


def task(
  name: str,
  domain: Domain,
  rule: str,
  seeds: Sequence[int],
  *,
  weight: float = 1.0,
  what: str = "learning",
) -> types.Task:
  """A task for `run`; its settings are the domain's fields and the arguments.

  The task's name ends in the rule's. It learns, or makes a `map` of first visits at
  ε = 1.
  """
  (kind,) = (key for key, kind in DOMAINS.items() if isinstance(domain, kind))
  settings = {"domain": kind, "what": what, "rule": rule, "seeds": list(seeds)}
  return types.Task(f"{name}_{rule}", settings | dataclasses.asdict(domain), weight)


def of(settings: types.Settings) -> Any:
  """The domain of a task's settings."""
  kind = DOMAINS[settings["domain"]]
  return kind(
    **{field.name: settings[field.name] for field in dataclasses.fields(kind)}
  )


def run(settings: types.Settings) -> types.Results:
  """Computes a `task` from its settings.

  Returns:
    The results of `runs.learn` that the domain keeps, or those of `runs.wander`.
  """
  domain, seeds = of(settings), settings["seeds"]
  problem = domain.problem()
  if settings["what"] == "map":
    every_action = runs.make_rule(settings["rule"], 1.0)
    return runs.wander(problem, every_action, seeds, domain.map_steps)
  # One of `selection.TIES`: with fixed ties, a gridworld's initial values differ.
  ties = "first" if getattr(domain, "ties", None) == "first" else "random"
  rule = runs.make_rule(settings["rule"], domain.epsilon, ties)
  results = runs.learn(problem, rule, seeds, domain.episodes)
  return {name: results[name] for name in domain.kept}
