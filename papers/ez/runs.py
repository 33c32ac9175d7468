"""Paper 1's small domains with their learners, and what is computed in them.

A task's settings are one of `DEEP_SEA`, `GRIDWORLD`, `MOUNTAIN_CAR` and `CARTPOLE`, or
`CHAIN`, with a rule (`RULES`) or a law of durations (`law`, `parameter`, `cap`), and
changes. The values are those of appendix B where it has them.
"""

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

# docs/papers/ez_greedy.md says how we read what the paper leaves open: γ, the limits of
# episodes, ties, and CartPole's basis. Initial values are 0. ε is 1 / (N + 1).
DEEP_SEA: dict[str, Any] = {
  "domain": "deep_sea",
  "episodes": 100_000,  # At most: until the greedy policy is optimal.
  "step_size": 1.0,  # α.
  "discount": 0.99,  # γ.
}
# "first", the lowest index, as in the pseudo-code's `arg max`; "fixed": each state
# prefers one action, drawn once per seed, until it learns other values, since initial
# values are ~ N(0, 1e-12); "random": drawn at each step.
TIES = ("first", "fixed", "random")
GRIDWORLD = {
  "domain": "gridworld",
  "size": 20,  # Figure 11; not in figure 3.
  "episodes": 100,  # Appendix F, of the main text's figure.
  "step_size": 0.1,
  "epsilon": 0.1,
  "discount": 0.99,
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


_DURATIONS: dict[str, Callable[[figures.Settings], exploration.Duration]] = {
  "zeta": lambda x: exploration.ZetaDuration(x["parameter"], x["cap"]),
  "exponential": lambda x: exploration.ExponentialDuration(x["parameter"], x["cap"]),
  "uniform": lambda x: exploration.UniformDuration(int(x["parameter"])),
}


def make_rule(settings: figures.Settings) -> exploration_types.Rule:
  """ε-greedy, or εz-greedy with the paper's zeta law (μ = 2, up to 10 000) or `law`."""
  if settings.get("rule") == "r_max":
    return exploration.Greedy()
  epsilon = settings["epsilon"] if "epsilon" in settings else 1 / (settings["size"] + 1)
  if "law" in settings:
    duration = _DURATIONS[settings["law"]](settings)
    return exploration.EzGreedy(epsilon, duration=duration)
  rules = {"epsilon": exploration.EpsilonGreedy, "ez": exploration.EzGreedy}
  ties = "first" if settings.get("ties") == "first" else "random"
  return rules[settings["rule"]](epsilon, of=exploration.Greedy(ties=ties))


class Problem(NamedTuple):
  """An environment and a learner."""

  environment: jax_types.Environment
  params: Any  # Of the environment, or a list of those of each seed.
  learner: learners.Learner
  cell: learners.Encode  # In a map of first visits; beyond it after an episode's end.
  num_cells: int
  shortest_episode: int  # The least number of steps in an episode.
  stop: loop.Stop | None = None  # Ends learning before its limit of episodes.


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


def _values(settings: figures.Settings, *names: str) -> dict[str, Any]:
  return {name: settings[name] for name in ("step_size", "discount", *names)}


def _deep_sea(settings: figures.Settings) -> Problem:
  """With `permuted`, seed s uses action mapping s."""
  size = settings["size"]
  environment = deep_sea.DeepSea(size, permuted=False)
  params: Any = environment.default_params()
  if settings.get("permuted"):
    params = [
      params._replace(right=deep_sea.action_mapping(seed, size))
      for seed in settings["seeds"]
    ]

  def cell(state: Any, _: Any) -> jax.Array:
    return state.row * size + state.column

  def goes_to_treasure(table: jax.Array, params: deep_sea.Params) -> jax.Array:
    """Whether the greedy policy of a table goes right on the whole diagonal."""
    diagonal = jnp.arange(size)
    q = table[diagonal * (size + 1)]
    right = jnp.asarray(params.right)[diagonal, diagonal]
    return jnp.all(q[diagonal, right] > q[diagonal, 1 - right])

  learner = learners.q_learning(cell, size**2, 2, **_values(settings))
  return Problem(environment, params, learner, cell, size**2, size, goes_to_treasure)


def _gridworld(settings: figures.Settings) -> Problem:
  """With a `world`, each seed has its own map; with a `threshold`, R-MAX learns."""
  size = settings["size"]
  environment = gridworld.GridWorld(size)
  params: Any = environment.default_params()._replace(
    time_limit=settings["time_limit"], noise=settings.get("noise", 0.0)
  )
  if settings.get("world"):
    params = [
      params._replace(**draw_map(settings, seed)._asdict())
      for seed in settings["seeds"]
    ]

  def cell(state: Any, _: Any) -> jax.Array:
    return state.position[0] * size + state.position[1]

  if "threshold" in settings:
    names = "threshold", "reward_max", "discount", "tolerance"
    learner = learners.r_max(cell, size**2, 4, **{x: settings[x] for x in names})
  else:
    spread = _TIE_STD if settings.get("ties") == "fixed" else 0.0
    values = _values(settings)
    learner = learners.q_learning(cell, size**2, 4, **values, initial_std=spread)
  # The goal is farther than `size` steps.
  return Problem(environment, params, learner, cell, size**2, size)


def _mountain_car(settings: figures.Settings) -> Problem:
  """The cells are of velocity (their rows) and position."""
  low, high = mountain_car.POSITIONS
  speed = mountain_car.MAX_SPEED
  basis = learners.FourierBasis(settings["order"], (low, -speed), (high, speed))

  def cell(state: Any, _: Any) -> jax.Array:
    row = _bin_of(state.velocity, -speed, speed)
    return row * _CELLS + _bin_of(state.position, low, high)

  return Problem(
    mountain_car.MountainCar(),
    mountain_car.Params(settings.get("noise", 0.0), settings["time_limit"]),
    learners.sarsa_lambda(basis, 3, **_values(settings, "trace_decay")),
    cell,
    num_cells=_CELLS**2,
    shortest_episode=13,  # 0.9 from the start to the goal, at a speed of at most 0.07.
  )


def _cartpole(settings: figures.Settings) -> Problem:
  """The cells are of the angle (their rows) and the position."""
  full = settings["basis"] == "full"
  low = tuple(-x for x in _BOUNDS)
  basis = learners.FourierBasis(settings["order"], low, _BOUNDS, total_order=not full)
  values = _values(settings, "trace_decay", "initial_variance")
  num_actions = len(cartpole_swingup.CONTROLS)

  def cell(state: Any, _: Any) -> jax.Array:
    x, angle = state.position
    end = cartpole_swingup.SLIDER_END
    row = _bin_of(jnp.arctan2(jnp.sin(angle), jnp.cos(angle)), -math.pi, math.pi)
    return row * _CELLS + _bin_of(x, -end, end)

  return Problem(
    cartpole_swingup.CartpoleSwingup(),
    jax_types.TimeLimit(settings["time_limit"]),
    learners.sarsa_lambda(basis, num_actions, **values, scale_steps=full),
    cell,
    num_cells=_CELLS**2,
    shortest_episode=settings["time_limit"],
  )


def _bin_of(x: jax.Array, low: float, high: float) -> jax.Array:
  """The index of x in bins of equal width, int32; clipped to the bins."""
  scaled = (x - low) / (high - low) * _CELLS
  return jnp.clip(scaled, 0, _CELLS - 1).astype(jnp.int32)


def _chain(settings: figures.Settings) -> Problem:
  size, environment = settings["size"], chain.Chain(settings["size"])

  def cell(state: Any, _: Any) -> jax.Array:
    return state.position

  learner = learners.q_learning(cell, size, 2, **_values(settings))
  return Problem(environment, environment.default_params(), learner, cell, size, 1)


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
  record = loop.run(
    *(of.learner, make_rule(settings), of.environment, of.params, settings["seeds"]),
    num_episodes=settings["episodes"],
    stop=of.stop,
  )
  if of.stop is None:
    names = "returns", "discounted_returns"
    return {name: np.asarray(getattr(record, name)) for name in names}
  found, episodes = np.asarray(record.returns) > 0, np.asarray(record.episodes)
  return {
    "first_treasure": np.where(found.any(axis=1), found.argmax(axis=1) + 1, 0),
    "optimal": np.where(record.stopped, episodes, 0),
    "episodes": episodes,
  }


def explore(
  settings: figures.Settings,
  of: Problem | None = None,
  *,
  greedy_action: int = 0,
  pairs: bool = False,
) -> figures.Results:
  """Explores with ε for `steps`, without learning, in the settings' problem or `of`.

  As in appendix D, a cell's first visit is the first step of a trial at which the agent
  is in the cell, or the number of steps if there is none. A trial has several episodes.
  The same action is greedy in all states.

  Returns:
    `first_visits` int32 and `visited` bool, `[S, C]`, or `[S, C, A]` of `pairs` of a
    cell and an action.
  """
  of, steps = of or problem(settings), settings["steps"]
  learner = learners.first_visits(
    *(of.cell, of.num_cells, of.environment.num_actions, greedy_action, pairs)
  )
  record = loop.run(
    *(learner, make_rule(settings), of.environment, of.params, settings["seeds"]),
    num_episodes=steps // of.shortest_episode + 1,
    max_steps=steps,
  )
  first = np.asarray(record.learner.first)
  return {"first_visits": np.minimum(first, steps), "visited": first <= steps}
