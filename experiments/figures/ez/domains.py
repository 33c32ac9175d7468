"""Paper 1's small domains, each with its learner: appendix B's settings."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import ranges
from explorax.agents.tabular import fourier, q_learning, sarsa
from explorax.environments import (
  cartpole_swingup,
  deep_sea,
  grid_maps,
  gridworld,
  jax_types,
  mountain_car,
)
from explorax.experiments.figures import types
from explorax.experiments.figures.ez import runs
from explorax.exploration import selection

_TIE_STD = 1e-6  # Of the initial values where ties are fixed: far below any reward.
_RETURNS = ("returns", "discounted_returns")  # `[S, E]`, of what was learnt.
TIES = ("first", "fixed", "random")  # How GridWorld's equal values are told apart.
WORLDS = ("obstacles", "traps")  # A world has one kind or the other.


@dataclasses.dataclass(frozen=True)
class DeepSea:
  """Q-learning in the deep sea, until the treasure is found for the first time.

  Values begin at 0. Ties are broken at random, or to the first index, which is left:
  then exploration alone goes to the right, and what ε-greedy needs grows as
  (2(N + 1))^N instead of about 2^N. The results of learning are `episodes` to the first
  treasure, and `stopped`, whether there was one.

  Only steps to the right cost, as in bsuite: if all did, values of 0 at the start would
  be optimistic, and lead greedy actions to whatever was not tried yet.
  """

  size: int = 20  # N.
  episodes: int = 20_000  # At most (our own).
  step_size: float = 1.0  # α.
  discount: float = 0.99  # γ (our own).
  ties: str = "random"  # Or "first".
  permuted: bool = False  # Seed s has the actions' effects of mapping s.
  # Of a trial of the map of first visits. Its scale, log(E + 1) in [0, 16] (appendix
  # B), ends where a cell is never visited: e¹⁶ steps are 9 million.
  map_steps: int = 9_000_000

  label: ClassVar[str] = "DeepSea"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")
  kept: ClassVar[tuple[str, ...]] = ("episodes", "stopped")

  def __post_init__(self):
    ranges.at_least(self, 2, "size", "map_steps")
    ranges.at_least(self, 1, "episodes")
    ranges.within(self, 0, 1, "step_size", "discount")
    ranges.one_of(self, "ties", selection.TIES)

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
      # Only the treasure makes a return positive.
      options={"stop_return": 0.5, "observe": cell},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """The logarithm, as in figure 3; nothing above the diagonal."""
    values = np.log(_square(values) + 1.0)
    return np.where(np.tri(self.size, dtype=bool), values, np.nan)


@dataclasses.dataclass(frozen=True)
class GridWorld:
  """Q-learning in the gridworld.

  How actions of equal values are told apart matters, since until the goal was found all
  are equal. There are three readings (`TIES`):

  - "first": the lowest index, as the pseudo-code's `arg max` is usually computed: left,
    in all states that know nothing.
  - "fixed": each state has a favourite action, drawn once for each seed, until it
    learns better; values begin at ~ N(0, 10⁻¹²). That is "first" without the direction
    that the actions' order happens to favour, which decides where start and goal are
    the same in all runs.
  - "random": drawn in each step, the default of the rules in this project. An
    agent that knows nothing walks at random, whatever its ε; that is exploration which
    neither ε-greedy nor εz-greedy of the paper has.
  """

  size: int = 20  # Rows and columns (figure 11; figure 3 is silent).
  episodes: int = 100  # Appendix F, of the main text's figure.
  step_size: float = 0.1  # α.
  epsilon: float = 0.1
  discount: float = 0.99  # γ (our own).
  ties: str = "fixed"  # Of `TIES`.
  noise: float = 0.0  # The probability of going to a random neighbour instead.
  # Of `WORLDS`: each seed has its own (`draw_map`); "" is the open one.
  world: str = ""
  density: float = 0.0  # Of the world's obstacles or traps.
  time_limit: int = 1000  # Steps of an episode.
  map_steps: int = 5000  # Of a trial of the map of first visits (our own).

  label: ClassVar[str] = "GridWorld"
  map_axes: ClassVar[tuple[str, str]] = ("column", "row")
  kept: ClassVar[tuple[str, ...]] = _RETURNS

  def __post_init__(self):
    ranges.at_least(self, 5, "size")
    ranges.at_least(self, 1, "episodes", "time_limit")
    ranges.at_least(self, 2, "map_steps")
    ranges.within(self, 0, 1, "step_size", "epsilon", "discount", "noise")
    ranges.one_of(self, "ties", TIES)
    ranges.one_of(self, "world", ("", *WORLDS))

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
      shortest_episode=self.size,  # From the start to the goal are more steps yet.
      params=params,
      own_params=own_world if self.world else None,
      options={"observe": cell},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    return _square(values)


def draw_map(world: str, density: float, size: int, seed: int) -> grid_maps.Map:
  """The world of a seed, the same for every agent: number seed + 1.

  Worlds of one seed belong together: a denser one has what fills the thinner one, and
  more.
  """
  densities = dict.fromkeys(WORLDS, 0.0) | {world: density}
  return grid_maps.draw(size, **densities, world=seed + 1)


@dataclasses.dataclass(frozen=True)
class MountainCar:
  """SARSA(λ) on a Fourier basis in the sparse MountainCar."""

  episodes: int = 1000  # Figure 8's caption.
  order: int = 5  # Of the Fourier basis.
  step_size: float = 0.005  # α, of all features alike (the paper is silent).
  epsilon: float = 0.05
  discount: float = 0.99  # γ.
  trace_decay: float = 0.9  # λ.
  noise: float = 0.0  # The variance of the force.
  time_limit: int = 5000  # Steps of an episode.
  map_steps: int = 5000  # Of a trial of the map of first visits (our own).
  map_cells: int = 20  # Of position, and of velocity (our own; the table is lost).

  label: ClassVar[str] = "MountainCar"
  map_axes: ClassVar[tuple[str, str]] = ("position", "velocity")
  kept: ClassVar[tuple[str, ...]] = _RETURNS

  def __post_init__(self):
    ranges.at_least(self, 1, "episodes", "order", "time_limit")
    ranges.at_least(self, 0, "step_size")
    ranges.at_least(self, 2, "map_steps", "map_cells")
    ranges.at_least(self, 0, "noise")
    ranges.within(self, 0, 1, "epsilon", "discount", "trace_decay")

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
class CartPole:
  """SARSA(λ) on a Fourier basis in the sparse swing-up.

  The paper says "an order 7 Fourier basis" of five numbers. Taken as all c with
  elements up to 7, it has 32 768 features: with the same α for all of them the weights
  diverge, so that here the step size of each is divided by ‖c‖ (Konidaris et al.,
  2011), and the initial weights make values of a standard deviation of 4, where a step
  earns 1 at most; neither rule was seen to learn. Taken as those whose elements add up
  to 7 at most, it has 792, and all the numbers that the paper gives work as they are.
  """

  basis: str = "full"  # Or "total": only features of a total order up to `order`.
  episodes: int = 300  # The paper's text gives no number: our own.
  order: int = 7  # Of the Fourier basis.
  step_size: float = 0.0005  # α.
  epsilon: float = 0.01
  discount: float = 0.99  # γ.
  trace_decay: float = 0.7  # λ.
  initial_variance: float = 0.001  # Of the weights.
  time_limit: int = 1000  # Steps of an episode.
  map_steps: int = 10_000  # Of a trial of the map of first visits (our own).
  map_cells: int = 20  # Of the pole's angle, and of the cart's place (our own).

  label: ClassVar[str] = "CartPole"
  map_axes: ClassVar[tuple[str, str]] = ("place", "angle (upright in the middle)")
  kept: ClassVar[tuple[str, ...]] = _RETURNS
  # Of (x, cos θ, sin θ, dx/dt, dθ/dt): the slider's end, and speeds that a swing-up
  # hardly exceeds (our own; the paper is silent).
  bounds: ClassVar[tuple[float, ...]] = (
    *(cartpole_swingup.SLIDER_END, 1.0, 1.0),
    *(5.0, 10.0),
  )

  def __post_init__(self):
    ranges.one_of(self, "basis", ("full", "total"))
    ranges.at_least(self, 1, "episodes", "order")
    ranges.at_least(self, 0, "step_size", "initial_variance")
    ranges.at_least(self, 1, "time_limit")
    ranges.at_least(self, 2, "map_steps", "map_cells")
    ranges.within(self, 0, 1, "epsilon", "discount", "trace_decay")

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
      params=cartpole_swingup.Params(self.time_limit),
      # The many weights of one seed fill a processor's caches; not an accelerator.
      options={"sequential": scaled and jax.default_backend() == "cpu"},
    )

  def to_map(self, values: np.ndarray) -> np.ndarray:
    """Place from left to right, angle from −π (hanging) below to π above."""
    return _square(values)[::-1]


def in_cartpole(state: Any, cells: int) -> jax.Array:
  """The cell of the angle (its rows) and the place; see `runs.Cell`."""
  x, angle = state.position
  end = cartpole_swingup.SLIDER_END
  wrapped = jnp.arctan2(jnp.sin(angle), jnp.cos(angle))
  row = _bin_of(wrapped, -math.pi, math.pi, cells)
  return row * cells + _bin_of(x, -end, end, cells)


def _bin_of(x: jax.Array, low: float, high: float, num: int) -> jax.Array:
  """Which of `num` bins of one width x is in, int32; beyond them, the nearest."""
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
  """A task whose settings are the domain's fields and these, for `run`.

  Its name is followed by the rule's. It learns, or makes a `map` of first visits at
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


def run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """What the settings of a `task` ask for.

  Returns:
    Of `runs.learn`, what the domain keeps; or the results of `runs.wander`.
  """
  del context
  domain, seeds = of(settings), settings["seeds"]
  problem = domain.problem()
  if settings["what"] == "map":
    every_action = runs.make_rule(settings["rule"], 1.0)
    return runs.wander(problem, every_action, seeds, domain.map_steps)
  # Of `selection.TIES`: where a gridworld's are fixed, values begin apart.
  ties = "first" if getattr(domain, "ties", None) == "first" else "random"
  rule = runs.make_rule(settings["rule"], domain.epsilon, ties)
  results = runs.learn(problem, rule, seeds, domain.episodes)
  return {name: results[name] for name in domain.kept}
