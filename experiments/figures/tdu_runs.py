"""Runs of paper 4's agents: in which episode each of them solves a problem."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.environments import jax_adapter, jax_types
from explorax.experiments import presets
from explorax.experiments.figures import types
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.runners import device, local

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes

PAPER = "Flennerhag et al. (2020), Temporal Difference Uncertainties"
BOOTSTRAPPED = "bootstrapped_dqn"  # What paper 4 calls β = 0.
TDU = "tdu"


def check(config: Any) -> None:
  """Refuses what no figure of this kind can have.

  Args:
    config: with `sizes`, `max_episodes`, `num_seeds` and `seeds_per_task`.
  """
  for name in ("max_episodes", "num_seeds", "seeds_per_task"):
    if getattr(config, name) < 1:
      raise ValueError(f"{name} is {getattr(config, name)}; it must be at least 1.")
  check_distinct("sizes", config.sizes)
  if min(config.sizes) < 2:
    raise ValueError(f"sizes are {config.sizes}; each must be at least 2.")


def check_distinct(name: str, values: Sequence[Any]) -> None:
  """Refuses an empty list, and one that names something twice."""
  if not values or len(set(values)) < len(values):
    raise ValueError(f"{name} are {values}; give at least one, and none twice.")


def check_scales(name: str, values: Sequence[float]) -> None:
  """Refuses scales that are negative or infinite."""
  check_distinct(name, values)
  if not all(0 <= value < np.inf for value in values):
    raise ValueError(f"{name} are {values}; they are finite and not negative.")


def agent_settings(
  beta: float, prior_scale: float, num_explorers: int | None = None
) -> dict[str, Any]:
  """The part of a task's settings that says which agent it is: TDU with these scales.

  β = 0 is Bootstrapped DQN, as in the paper: without a bonus, explorers and exploiters
  learn the same.
  """
  return {
    "agent": TDU if beta else BOOTSTRAPPED,
    "beta": beta,
    "prior_scale": prior_scale,
    "num_explorers": num_explorers if beta else 0,
  }


def agent_config(settings: types.Settings) -> Any:
  """The preset's config, changed by what the settings say.

  Args:
    settings: `agent`, a preset's name; `beta`, `prior_scale` and `num_explorers` where
      they are not the preset's (of explorers, the total of value functions remains).
  """
  config = presets.PRESETS[settings["agent"]].config
  changes = {
    name: settings[name]
    for name in ("beta", "prior_scale", "num_explorers")
    if settings.get(name) is not None
  }
  if "num_explorers" in changes:
    changes["num_members"] = config.ensemble_size - changes["num_explorers"]
  return dataclasses.replace(config, **changes)


def seed_chunks(num_seeds: int, seeds_per_task: int) -> list[list[int]]:
  """0 to num_seeds − 1, in lists of at most so many."""
  seeds = list(range(num_seeds))
  return [seeds[i : i + seeds_per_task] for i in range(0, num_seeds, seeds_per_task)]


def solve(
  settings: types.Settings,
  environment: jax_types.Environment,
  *,
  rule: Callable[[], environments.SolvedRule],
  is_bad: Callable[[local.Episode], float],
  tick: types.Tick,
  params: jax_types.Params = None,
  config: Any = None,
) -> types.Results:
  """Runs an agent until all seeds have solved a problem, or had their episodes.

  Args:
    settings: `agent`, `seeds` and `max_episodes`, and all that `agent_config` reads.
    environment: written in JAX.
    rule: makes that by which the average regret counts as low enough.
    is_bad: an episode's regret, 0 or 1.
    tick: told the share done, by episodes.
    params: of the environment, one for each seed; its own defaults where None.
    config: the agent's; `agent_config(settings)` where None.

  Returns:
    For each seed, `[S]`: `solved`, the episode in which it was, or 0; `episodes`, how
    many there were up to then, or up to the limit; `bad`, how many of them were bad.
  """
  seeds, limit = settings["seeds"], settings["max_episodes"]
  adapter = jax_adapter.JaxEnvironment(environment, seed=0)
  preset = presets.PRESETS[settings["agent"]]
  config = agent_config(settings) if config is None else config
  agent = preset.make_agent(config, environments.spec(adapter))
  rules = {seed: rule() for seed in seeds}
  episodes, bad = dict.fromkeys(seeds, 0), dict.fromkeys(seeds, 0.0)

  def is_over(seed: int) -> bool:
    return rules[seed].solved_episode is not None or episodes[seed] >= limit

  def count(seed: int, episode: local.Episode) -> None:
    if not is_over(seed):
      episodes[seed] += 1
      bad[seed] += is_bad(episode)
      rules[seed].update(episodes[seed], bad[seed])

  def stop() -> bool:
    shares = [1.0 if is_over(seed) else episodes[seed] / limit for seed in seeds]
    tick(sum(shares) / len(seeds))
    return min(shares) == 1.0

  results = device.train(
    agent,
    environment,
    params,
    seeds=seeds,
    params_per_seed=params is not None,
    num_episodes=limit,
    on_episode=count,
    stop=stop,
  )
  if any(r.interrupted for r in results) and not all(map(is_over, seeds)):
    raise types.InterruptedTaskError
  return {
    "solved": np.array([rules[seed].solved_episode or 0 for seed in seeds], np.int32),
    "episodes": np.array([episodes[seed] for seed in seeds], np.int32),
    "bad": np.array([bad[seed] for seed in seeds], np.int32),
  }


def stack_params(params: Sequence[jax_types.Params]) -> jax_types.Params:
  """Parameters of one kind, with an axis of seeds in front: for `solve`."""
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)


def over_seeds(done: Sequence[types.Done], name: str) -> np.ndarray:
  """One result of tasks that differ in their seeds only, `[S]` in the seeds' order."""
  ordered = sorted(done, key=lambda task: task.settings["seeds"][0])
  return np.concatenate([task.results[name] for task in ordered])


def episodes_to_solve(done: Sequence[types.Done]) -> np.ndarray:
  """Of tasks that differ in their seeds only: `[S]`, the limit where it never was."""
  solved, episodes = over_seeds(done, "solved"), over_seeds(done, "episodes")
  return np.where(solved > 0, solved, episodes)


def scores(done: Sequence[types.Done]) -> np.ndarray:
  """Of one agent's tasks: each seed's share of the problems that it solved, `[S]`."""
  return np.mean(solved(done), axis=1)


def solved(done: Sequence[types.Done]) -> np.ndarray:
  """Of one agent's tasks: bool `[S, M]`, whether each seed solved each problem.

  The problems are of several sizes and versions, each with the same seeds.
  """
  problems: dict[str, list[types.Done]] = {}
  for task in done:
    problem = {k: v for k, v in task.settings.items() if k != "seeds"}
    problems.setdefault(json.dumps(problem), []).append(task)
  each = [over_seeds(tasks, "solved") > 0 for tasks in problems.values()]
  return np.stack(each, axis=1)


def sizes(done: Sequence[types.Done]) -> list[int]:
  """Those that there are tasks of, in their order."""
  return sorted({task.settings["size"] for task in done})


def median_over_seeds(x: np.ndarray) -> np.ndarray:
  """`[..., S, *]` with the seeds in axis −2 → their median."""
  return np.median(x, axis=-2)


def draw_episodes(
  axes: "mpl_axes.Axes",
  lines: Sequence[tuple[str, Sequence[types.Done]]],
  *,
  xlabel: str,
) -> None:
  """Draws the median episodes to solve against the size, a line for each agent."""
  every = sizes([task for _, done in lines for task in done])
  for index, (label, done) in enumerate(lines):
    values = [episodes_to_solve(types.select(done, size=size)) for size in every]
    drawing.curve(
      axes,
      every,
      np.stack(values, axis=1),
      label=label,
      index=index,
      statistic=median_over_seeds,
      markers=True,
    )
  limit = max(task.settings["max_episodes"] for _, done in lines for task in done)
  axes.axhline(limit, color="0.4", linewidth=0.8)
  axes.text(
    0.5,
    limit,
    "limit",
    transform=axes.get_yaxis_transform(),
    ha="center",
    va="bottom",
    fontsize="x-small",
    color="0.3",
  )
  axes.set(xlabel=xlabel, ylabel="episodes to solve (median)", yscale="log")
  fewest = min(episodes_to_solve(done).min() for _, done in lines)
  num_columns = 2 if len(lines) <= 6 else 3
  num_rows = -(-len(lines) // num_columns)
  # Decades, so that more than one has its number; and room for the legend.
  axes.set_ylim(10.0 ** np.floor(np.log10(fewest)), 3 ** (num_rows + 1) * limit)
  axes.set_xticks(every[:: -(-len(every) // 8)])
  axes.legend(
    fontsize="small",
    loc="upper center",
    ncols=num_columns,
    handlelength=1.8,
    columnspacing=1.0,
  )
  axes.grid(alpha=0.3)


def compare(claim: str, a: np.ndarray, b: np.ndarray, *, what: str) -> types.Finding:
  """Whether the mean of `a` is beyond doubt greater than that of `b`, `[S]` each."""
  gap = statistics.difference(a, b)
  return types.Finding(
    claim,
    f"{what} {np.mean(a):.3g} and {np.mean(b):.3g}, a difference of {gap.value:.3g} "
    f"[{gap.low:.3g}, {gap.high:.3g}]",
    bool(gap.low > 0),
  )
