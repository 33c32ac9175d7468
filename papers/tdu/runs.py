"""Runs of paper 4's agents: the episode in which each one solves a problem."""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents import ranges
from explorax.environments import deep_sea, jax_adapter, jax_types
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.recording import statistics
from explorax.experiments.runners import core, device
from explorax.papers import panels, types

PAPER = "Flennerhag et al. (2020), Temporal Difference Uncertainties"
BOOTSTRAPPED = "bootstrapped_dqn"  # What paper 4 calls β = 0.
TDU = "tdu"
# Episodes whose treasures are counted, for `until`. At N = 50 the best policy finds
# 0.37 of them, with a standard error of 0.02.
_WINDOW = 500


def check(config: Any) -> None:
  """Refuses impossible settings of these figures.

  Args:
    config: with `sizes`, `max_episodes`, `num_seeds` and `seeds_per_task`.
  """
  ranges.distinct(config, "sizes")
  ranges.at_least(config, 2, "sizes")
  ranges.at_least(config, 1, "max_episodes", "num_seeds", "seeds_per_task")


def agent_settings(
  beta: float, prior_scale: float, num_explorers: int | None = None
) -> dict[str, Any]:
  """The agent's part of a task's settings: TDU with these scales.

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
  """The preset's config, changed where the settings say so.

  A different number of explorers does not change the total number of value functions.
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


def train(
  settings: types.Settings,
  config: Any,
  environment: jax_types.Environment,
  *,
  own_params: Sequence[jax_types.Params] = (),
  on_episode: Callable[[core.Episode], None],
  share: Callable[[], float],
  context: types.TaskContext,
  **end: Any,
) -> None:
  """Trains an agent on the device with all seeds of a task side by side.

  Each seed may have its own environment parameters. Training ends after the episodes or
  steps of `end` (fields of `RunConfig`), or when the finished `share`, which
  `context.report` receives, is 1.

  Raises:
    InterruptedTaskError: if training was stopped before its end.
  """

  def stop() -> bool:
    done = share()
    context.report(done)
    return done >= 1.0

  adapter = jax_adapter.JaxEnvironment(environment, seed=0)
  preset = presets.PRESETS[settings["agent"]]
  results = device.run_seeds(
    preset.make_agent(config, environments.spec(adapter)),
    environment,
    config_lib.RunConfig(runner="device", **end),
    core.Hooks(on_episode=on_episode, stop=stop),
    seeds=settings["seeds"],
    params=jax.tree.map(lambda *x: jnp.stack(x), *own_params) if own_params else None,
    params_per_seed=bool(own_params),
  )
  if any(result.interrupted for result in results) and share() < 1.0:
    raise types.InterruptedTaskError


def solve(
  settings: types.Settings,
  config: Any,
  environment: jax_types.Environment,
  *,
  rule: Callable[[], environments.SolvedRule],
  metrics: Callable[[core.Episode], Mapping[str, float]],
  context: types.TaskContext,
  own_params: Sequence[jax_types.Params] = (),
) -> types.Results:
  """Runs an agent until all seeds have solved a problem or reached the episode limit.

  The rule decides from the treasures in the episodes' `metrics` (`bad_episode` and
  `denoised_return`) whether a seed has solved the problem. A run with the setting
  `until` ends later: when, besides, the share of the last 500 episodes that found the
  treasure has been at least `until` times the best policy's.

  Returns:
    For each seed, `[S]`: `solved`, the episode in which the problem was solved, or 0;
    `by_bsuite`, the same by bsuite's rule, within these episodes; `mastered`, the
    first episode in which the share was `until`, or 0 (only with `until`); `episodes`,
    their number up to the run's end; `treasures`, how many of them found the treasure.
  """
  seeds, limit = settings["seeds"], settings["max_episodes"]
  until = settings.get("until")
  rules = {seed: rule() for seed in seeds}
  episodes, treasures = dict.fromkeys(seeds, 0), dict.fromkeys(seeds, 0.0)
  mastered = dict.fromkeys(seeds, 0)
  last = {seed: collections.deque[float](maxlen=_WINDOW) for seed in seeds}

  def is_over(seed: int) -> bool:
    solved = rules[seed].treasure_episode is not None
    done = solved and (until is None or mastered[seed] > 0)
    return done or episodes[seed] >= limit

  def count(episode: core.Episode) -> None:
    seed = episode.seed
    if not is_over(seed):
      episodes[seed] += 1
      found = metrics(episode)
      treasures[seed] += found["denoised_return"]
      last[seed].append(found["denoised_return"])
      rules[seed].take(episodes[seed], found)
      rate = sum(last[seed]) / _WINDOW
      if until is not None and rate >= until * rules[seed].best_rate:
        mastered[seed] = mastered[seed] or episodes[seed]

  def share() -> float:
    shares = [1.0 if is_over(seed) else episodes[seed] / limit for seed in seeds]
    return sum(shares) / len(seeds)

  train(
    settings,
    config,
    environment,
    own_params=own_params,
    on_episode=count,
    share=share,
    context=context,
    episodes=limit,
  )
  of_seeds = {
    "solved": [rules[seed].treasure_episode or 0 for seed in seeds],
    "by_bsuite": [rules[seed].solved_episode or 0 for seed in seeds],
    "episodes": [episodes[seed] for seed in seeds],
    "treasures": [treasures[seed] for seed in seeds],
  }
  if until is not None:
    of_seeds["mastered"] = [mastered[seed] for seed in seeds]
  return {name: np.array(values, np.int32) for name, values in of_seeds.items()}


def solve_deep_sea(
  settings: types.Settings, context: types.TaskContext, config: Any = None
) -> types.Results:
  """`solve` for Deep Sea of a `size`, `stochastic` or not.

  In the paper, a size is solved when the average regret falls below 0.9. In the
  stochastic version, luck can achieve this in a run's first episodes, so that bsuite
  requires 0.8 from the hundredth episode. Regret counts treasures, since the regret of
  bsuite's stochastic version is low even without them (`environments.SolvedRule`). The
  action mapping is that of bsuite's sweeps; with `own_mapping`, each seed has its own.
  """
  stochastic = settings.get("stochastic", False)
  environment = deep_sea.DeepSea(settings["size"], stochastic=stochastic)
  own_params = []
  if settings.get("own_mapping", False):
    own_params = [
      dataclasses.replace(environment, mapping_seed=seed).default_params()
      for seed in settings["seeds"]
    ]

  def rule() -> environments.SolvedRule:
    version = ",stochastic=true" if stochastic else ""
    found = environments.solved_rule(f"jax:deep_sea/{settings['size']}{version}")
    assert found is not None  # bsuite has one for each of the two.
    return found

  return solve(
    settings,
    agent_config(settings) if config is None else config,
    environment,
    rule=rule,
    metrics=lambda episode: episode.metrics,
    context=context,
    own_params=own_params,
  )


def episodes_to_solve(table: types.Table, **settings: Any) -> np.ndarray:
  """An agent's episodes to solve, `[S, problems]`; the limit if it did not solve."""
  solved = table.per_seed("solved", **settings)
  return np.where(solved > 0, solved, table.per_seed("episodes", **settings))


def scores(table: types.Table, by: str = "solved", **settings: Any) -> np.ndarray:
  """The share of problems that each seed of an agent solved, `[S]`.

  Solved by the treasure, or `by_bsuite`.
  """
  return (table.per_seed(by, **settings) > 0).mean(axis=1)


def fewer_episodes(
  claim: str, a: types.Table, b: types.Table, who: str, *, paired: bool = False
) -> types.Finding:
  """Whether `a` solves the problems in fewer episodes than `b`; unsolved: the limit.

  Compares the mean over the problems of log₂ episodes to solve.

  Args:
    claim: the statement to test.
    a: the tasks of one or several agents.
    b: other tasks on the same problems.
    who: the names of both.
    paired: whether seeds of the same number have the same problem.
  """
  logs = [np.log2(episodes_to_solve(table)).mean(axis=1) for table in (a, b)]
  gap = statistics.mean(logs[0] - logs[1]) if paired else statistics.difference(*logs)
  ratio = gap.map(np.exp2)
  shares = [np.mean(scores(table)) for table in (a, b)]
  means = [np.exp2(np.mean(log)) for log in logs]
  return types.Finding(
    claim,
    f"{who}: solved {shares[0]:.0%} and {shares[1]:.0%}, in {means[0]:.0f} and "
    f"{means[1]:.0f} episodes (geometric means), a ratio of {ratio.words('.2f')}",
    ratio.is_below(1),
    min(map(len, logs)),
  )


def draw_episodes(
  axes: types.Axes, agents: Mapping[str, types.Table], *, xlabel: str, title: str = ""
) -> None:
  """Draws the median episodes to solve against the size: label → an agent's tasks."""
  sizes = sorted({size for table in agents.values() for size in table.values("size")})
  episodes = {
    label: episodes_to_solve(table)[:, np.argsort(table.values("size"))]
    for label, table in agents.items()
  }
  median = statistics.median_over_seeds
  panels.curves(axes, sizes, episodes, statistic=median, markers=True)
  limit = max(max(table.values("max_episodes")) for table in agents.values())
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
  fewest = min(values.min() for values in episodes.values())
  columns = 2 if len(agents) <= 6 else 3
  rows = -(-len(agents) // columns)
  legend = {"loc": "upper center", "ncols": columns}
  panels.finish(
    axes,
    title=title,
    legend={**legend, "handlelength": 1.8, "columnspacing": 1.0},
    xlabel=xlabel,
    ylabel="episodes to solve (median)",
    yscale="log",
    # Decades, so that more than one has its number; and room for the legend.
    ylim=(10.0 ** np.floor(np.log10(fewest)), 3 ** (rows + 1) * limit),
    xticks=sizes[:: -(-len(sizes) // 8)],
  )
