"""Paper 1's small domains with their learners, and what is computed in them.

A task's settings are one of `DEEP_SEA`, `GRIDWORLD`, `MOUNTAIN_CAR` and `CARTPOLE`, or
`CHAIN`, with a rule (`RULES`) or a law of durations (`law`, `parameter`, `cap`), and
changes. The values are those of appendix B where it has them.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.environments import (
  cartpole_swingup,
  chain,
  deep_sea,
  grid_maps,
  gridworld,
  jax_types,
  mountain_car,
)
from explorax.exploration import types as exploration_types
from explorax.papers import figures
from explorax.papers.tabular import learners, loop

PAPER = "Dabney et al. (2021), Temporally-extended ε-greedy exploration"
EZ, EPSILON = {"rule": "ez"}, {"rule": "epsilon"}
# The two rules that the figures compare, in the order of their lines.
RULES = {"ε-greedy": EPSILON, "εz-greedy": EZ}

# ε is 1 / (N + 1). Initial values are 0. Ties are broken at random. γ and the limit of
# episodes are our own. Only steps to the right have a cost, as in bsuite: if all steps
# had one, initial values of 0 would be optimistic.
DEEP_SEA = {
  "domain": "deep_sea",
  "episodes": 100_000,  # At most: until the greedy policy is optimal.
  "step_size": 1.0,  # α.
  "discount": 0.99,  # γ.
}
# Ties matter, since all values are equal until the goal is found. The paper permits
# three readings: "first", the lowest index, as in the pseudo-code's `arg max`, is left
# in states without information; "fixed": each state prefers one action, drawn once per
# seed, until it learns other values, since initial values are ~ N(0, 1e-12); "random":
# drawn at each step, so that an agent walks at random before it learns anything.
TIES = ("first", "fixed", "random")
GRIDWORLD = {
  "domain": "gridworld",
  "size": 20,  # Figure 11; not in figure 3.
  "episodes": 100,  # Appendix F, of the main text's figure.
  "step_size": 0.1,
  "epsilon": 0.1,
  "discount": 0.99,  # Our own.
  "time_limit": 1000,  # Steps of an episode.
}
MOUNTAIN_CAR = {
  "domain": "mountain_car",
  "episodes": 1000,  # Figure 8's caption.
  "order": 5,  # Of the Fourier basis.
  "step_size": 0.005,  # Of all features (not in the paper).
  "epsilon": 0.05,
  "discount": 0.99,
  "trace_decay": 0.9,  # λ.
  "time_limit": 5000,
}
# The paper says "an order 7 Fourier basis" of five numbers. The "full" basis, with all
# elements of c up to 7, has 32 768 features. With the same α for all of them, the
# weights diverge, so that each step size is divided by ‖c‖ (Konidaris et al., 2011);
# the initial weights give values with a standard deviation of 4, while a step earns at
# most 1, and neither rule learnt. The "total" one, with Σ_i c_i ≤ 7, has 792 features,
# and works with all the paper's numbers unchanged.
CARTPOLE = {
  "domain": "cartpole",
  "order": 7,
  "step_size": 0.0005,
  "epsilon": 0.01,
  "discount": 0.99,
  "trace_decay": 0.7,
  "initial_variance": 0.001,  # Of the weights.
  "time_limit": 1000,
}
CHAIN = {"domain": "chain", "step_size": 1.0, "discount": 1.0}

_TIE_STD = 1e-6  # Of initial values for fixed ties: far below any reward.
_CELLS = 20  # Of a map of continuous states, per axis (our own; the table is lost).
# Bounds of CartPole's (x, cos θ, sin θ, dx/dt, dθ/dt): the slider's end, and speeds
# that a swing-up rarely exceeds (our own).
_BOUNDS = (cartpole_swingup.SLIDER_END, 1.0, 1.0, 5.0, 10.0)


def make_rule(settings: figures.Settings, epsilon: float) -> exploration_types.Rule:
  """ε-greedy, or εz-greedy with the paper's zeta law (μ = 2, up to 10 000) or `law`."""
  if "law" in settings:
    return exploration.EzGreedy(epsilon, duration=_duration(settings))
  rules = {"epsilon": exploration.EpsilonGreedy, "ez": exploration.EzGreedy}
  ties = "first" if settings.get("ties") == "first" else "random"
  return rules[settings["rule"]](epsilon, of=exploration.Greedy(ties=ties))


def _duration(settings: figures.Settings) -> exploration.Duration:
  x = settings["parameter"]
  if settings["law"] == "zeta":
    return exploration.ZetaDuration(x, settings["cap"])
  if settings["law"] == "exponential":
    return exploration.ExponentialDuration(x, settings["cap"])
  return exploration.UniformDuration(int(x))


class Problem(NamedTuple):
  """An environment and a learner.

  Attributes:
    environment: written in JAX.
    learner: of action values.
    params: the environment's, or a list of those of each seed.
    cell: the environment's state → its cell in a map of first visits.
    num_cells: C.
    shortest_episode: the least number of steps in an episode.
    stop: when learning ends before its limit of episodes, if it does.
  """

  environment: jax_types.Environment
  learner: learners.Learner
  params: Any
  cell: Callable[[Any], jax.Array]
  num_cells: int
  shortest_episode: int
  stop: loop.Stop | None = None


@dataclasses.dataclass(frozen=True)
class InGrid:
  """The cell of a gridworld's position, in reading order."""

  size: int

  def __call__(self, state: Any) -> jax.Array:
    return state.position[0] * self.size + state.position[1]


@dataclasses.dataclass(frozen=True)
class InDeepSea:
  """The cell of a position in the deep sea; N² or above after an episode's end."""

  size: int

  def __call__(self, state: Any) -> jax.Array:
    return state.row * self.size + state.column


def in_chain(state: Any) -> jax.Array:
  """The position in a chain; the chain's length after an episode's end."""
  return state.position


def in_mountain_car(state: Any) -> jax.Array:
  """The cell of velocity (its rows) and position."""
  column = _bin_of(state.position, *mountain_car.POSITIONS)
  speed = mountain_car.MAX_SPEED
  return _bin_of(state.velocity, -speed, speed) * _CELLS + column


def in_cartpole(state: Any) -> jax.Array:
  """The cell of the angle (its rows) and the position."""
  x, angle = state.position
  end = cartpole_swingup.SLIDER_END
  row = _bin_of(jnp.arctan2(jnp.sin(angle), jnp.cos(angle)), -math.pi, math.pi)
  return row * _CELLS + _bin_of(x, -end, end)


def _bin_of(x: jax.Array, low: float, high: float) -> jax.Array:
  """The index of x in bins of equal width, int32; clipped to the bins."""
  scaled = (x - low) / (high - low) * _CELLS
  return jnp.clip(scaled, 0, _CELLS - 1).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class GoesToTreasure:
  """Whether the greedy policy of a table goes right on the whole diagonal."""

  size: int

  def __call__(self, table: jax.Array, params: deep_sea.Params) -> jax.Array:
    diagonal = jnp.arange(self.size)
    q = table[diagonal * (self.size + 1)]
    right = jnp.asarray(params.right)[diagonal, diagonal]
    return jnp.all(q[diagonal, right] > q[diagonal, 1 - right])


def draw_map(settings: figures.Settings, seed: int) -> grid_maps.Map:
  """The world of a seed, number seed + 1, the same for every agent.

  A seed's worlds are nested: a denser world contains all obstacles or traps of a
  sparser one.
  """
  densities = {"obstacles": 0.0, "traps": 0.0, settings["world"]: settings["density"]}
  return grid_maps.draw(settings["size"], **densities, world=seed + 1)


def problem(settings: figures.Settings) -> Problem:
  """The domain of a task's settings."""
  return _PROBLEMS[settings["domain"]](settings)


def _deep_sea(settings: figures.Settings) -> Problem:
  """With `permuted`, seed s uses action mapping s."""
  size = settings["size"]
  environment, cell = deep_sea.DeepSea(size, permuted=False), InDeepSea(size)
  params: Any = environment.default_params()
  if settings.get("permuted"):
    params = [
      params._replace(right=deep_sea.action_mapping(seed, size))
      for seed in settings["seeds"]
    ]
  return Problem(
    environment,
    learners.QLearning(cell, size**2, 2, **_of(settings, "step_size", "discount")),
    params,
    cell,
    num_cells=size**2,
    shortest_episode=size,
    stop=GoesToTreasure(size),
  )


def _gridworld(settings: figures.Settings) -> Problem:
  """With a `world`, each seed has its own map."""
  size = settings["size"]
  environment, cell = gridworld.GridWorld(size), InGrid(size)
  params: Any = environment.default_params()._replace(
    time_limit=settings["time_limit"], noise=settings.get("noise", 0.0)
  )
  if settings.get("world"):
    params = [
      params._replace(**draw_map(settings, seed)._asdict())
      for seed in settings["seeds"]
    ]
  values = _of(settings, "step_size", "discount")
  spread = _TIE_STD if settings.get("ties") == "fixed" else 0.0
  learner = learners.QLearning(cell, size**2, 4, **values, initial_std=spread)
  # The goal is farther than `size` steps.
  return Problem(environment, learner, params, cell, size**2, size)


def _mountain_car(settings: figures.Settings) -> Problem:
  low, high = mountain_car.POSITIONS
  speed = mountain_car.MAX_SPEED
  basis = learners.FourierBasis(settings["order"], (low, -speed), (high, speed))
  params = mountain_car.Params(settings.get("noise", 0.0), settings["time_limit"])
  return Problem(
    mountain_car.MountainCar(),
    learners.SarsaLambda(
      basis, 3, **_of(settings, "step_size", "discount", "trace_decay")
    ),
    params,
    in_mountain_car,
    num_cells=_CELLS**2,
    shortest_episode=13,  # 0.9 from the start to the goal, at a speed of at most 0.07.
  )


def _cartpole(settings: figures.Settings) -> Problem:
  full = settings["basis"] == "full"
  low = tuple(-x for x in _BOUNDS)
  basis = learners.FourierBasis(settings["order"], low, _BOUNDS, total_order=not full)
  return Problem(
    cartpole_swingup.CartpoleSwingup(),
    learners.SarsaLambda(
      basis,
      len(cartpole_swingup.CONTROLS),
      **_of(settings, "step_size", "discount", "trace_decay", "initial_variance"),
      scale_steps=full,
      # The weights of one seed fill a CPU's caches.
      sequential=full and jax.default_backend() == "cpu",
    ),
    jax_types.TimeLimit(settings["time_limit"]),
    in_cartpole,
    num_cells=_CELLS**2,
    shortest_episode=settings["time_limit"],
  )


def _chain(settings: figures.Settings) -> Problem:
  size, values = settings["size"], _of(settings, "step_size", "discount")
  environment = chain.Chain(size)
  learner = learners.QLearning(in_chain, size, 2, **values)
  return Problem(environment, learner, environment.default_params(), in_chain, size, 1)


def _of(settings: figures.Settings, *names: str) -> dict[str, Any]:
  return {name: settings[name] for name in names}


_PROBLEMS = {
  "deep_sea": _deep_sea,
  "gridworld": _gridworld,
  "mountain_car": _mountain_car,
  "cartpole": _cartpole,
  "chain": _chain,
}


def learn(settings: figures.Settings) -> figures.Results:
  """Learns for E episodes.

  Returns:
    In the deep sea `[S]`: `first_treasure` and `optimal`, the episodes that first find
    the treasure and after which the greedy policy goes to it, or 0; and `episodes`,
    their number. Elsewhere `returns` and `discounted_returns`, `[S, E]`.
  """
  of = problem(settings)
  epsilon = settings.get("epsilon") or 1 / (settings["size"] + 1)
  record = learn_with(of, make_rule(settings, epsilon), settings)
  returns, episodes = np.asarray(record.returns), np.asarray(record.episodes)
  if of.stop is None:
    discounted = np.asarray(record.discounted_returns)
    return {"returns": returns, "discounted_returns": discounted}
  found = returns > 0
  return {
    "first_treasure": np.where(found.any(axis=1), found.argmax(axis=1) + 1, 0),
    "optimal": np.where(record.stopped, episodes, 0),
    "episodes": episodes,
  }


def learn_with(
  of: Problem, rule: exploration_types.Rule, settings: figures.Settings
) -> loop.Record:
  """Learns for the settings' `episodes` with their `seeds`."""
  return loop.run_seeds(
    of.learner,
    rule,
    of.environment,
    of.params,
    settings["seeds"],
    num_episodes=settings["episodes"],
    stop=of.stop,
  )


def wander(settings: figures.Settings) -> figures.Results:
  """Explores with ε for `steps`, without learning.

  As in appendix D, a cell's first visit is the first step of a trial at which the agent
  is in the cell, or the number of steps if there is none. A trial has several episodes.
  The same action is greedy in all states, by default the first one.

  Returns:
    `first_visits` int32 and `visited` bool, `[S, C]`.
  """
  record = explore(problem(settings), settings)
  return {
    "first_visits": np.asarray(record.first_visits),
    "visited": np.asarray(record.visited),
  }


def explore(
  of: Problem,
  settings: figures.Settings,
  *,
  greedy_action: int = 0,
  pairs: bool = False,
) -> loop.Record:
  """See `wander`; the first visits of `pairs` of cells and actions are `[S, C, A]`."""
  num_actions, steps = of.environment.num_actions, settings["steps"]
  return loop.run_seeds(
    learners.Fixed(of.cell, of.num_cells, num_actions, greedy_action),
    make_rule(settings, settings["epsilon"]),
    of.environment,
    of.params,
    settings["seeds"],
    num_episodes=steps // of.shortest_episode + 1,
    max_steps=steps,
    num_cells=of.num_cells,
    pairs=pairs,
  )
