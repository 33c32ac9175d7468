"""Which agents solve Deep Sea, and in how many episodes: five seeds each.

  python benchmarks/learning.py --output=results/learning            # runs, or goes on
  python benchmarks/learning.py --output=results/learning --table    # only prints

A run ends when bsuite's rule for its experiment calls it solved, or after
`--episodes`. Each finished run is a line of `runs.jsonl`, and is not run again.
Replay is the seeded one in memory, so that a run can be repeated to the bit on one
machine. Each run has one thread; `--workers` of them run side by side.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from explorax.experiments import threads

# label → (preset, the fields that differ from it)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
  "tdu": ("tdu", {}),
  "tdu, distinct target priors": ("tdu", {"target_prior": "distinct"}),
  "bootstrapped_dqn": ("bootstrapped_dqn", {}),
  "double_dqn": ("double_dqn", {}),
  "ucb": ("ucb", {}),
}
# bsuite's ids of these experiments are the sizes 10, 12, …, 50 in order.
DETERMINISTIC = {10: "bsuite:deep_sea/0", 20: "bsuite:deep_sea/5"}
STOCHASTIC = {
  10: "bsuite:deep_sea_stochastic/0",
  20: "bsuite:deep_sea_stochastic/5",
}


def tasks(num_seeds: int) -> list[tuple[str, str, int]]:
  """(label, environment, seed) of every run, the short ones first."""
  pairs = [("tdu", env) for env in DETERMINISTIC.values()]
  pairs += [("bootstrapped_dqn", env) for env in DETERMINISTIC.values()]
  pairs += [("tdu, distinct target priors", DETERMINISTIC[10])]
  pairs += [("double_dqn", DETERMINISTIC[20])]
  for env in STOCHASTIC.values():
    pairs += [(label, env) for label in ("tdu", "bootstrapped_dqn", "ucb")]
  return [(label, env, seed) for label, env in pairs for seed in range(num_seeds)]


def run_task(label: str, env_name: str, seed: int, episodes: int) -> dict[str, Any]:
  """One run: its first episodes below each threshold of average regret."""
  threads.use_one_thread()
  from explorax import environments
  from explorax.experiments import config as config_lib
  from explorax.experiments import presets
  from explorax.experiments.runners import core, local

  preset_name, changes = VARIANTS[label]
  preset = presets.PRESETS[preset_name]
  environment = environments.make(env_name, seed=seed)
  config = dataclasses.replace(preset.config, **changes)
  agent = preset.make_agent(config, environments.spec(environment))
  bsuite_rule = environments.solved_rule(env_name)
  below_09 = environments.SolvedRule(threshold=0.9)
  average_regret = math.nan

  def on_episode(episode: core.Episode) -> None:
    nonlocal average_regret
    bad = episode.metrics["total_bad_episodes"]
    average_regret = bad / episode.episode
    below_09.update(episode.episode, bad)
    bsuite_rule.update(episode.episode, bad)

  start = time.monotonic()
  result = local.run(
    agent,
    environment,
    config_lib.RunConfig(seed=seed, replay="memory", episodes=episodes),
    core.Hooks(
      on_episode=on_episode,
      stop=lambda: bsuite_rule.solved_episode is not None,
    ),
  )
  return {
    "label": label,
    "env": env_name,
    "seed": seed,
    "max_episodes": episodes,
    "solved_episode": bsuite_rule.solved_episode,
    "first_below_0.9": below_09.solved_episode,
    "episodes": result.episodes,
    "average_regret": average_regret,
    "env_steps": result.env_steps,
    "seconds": round(time.monotonic() - start, 1),
  }


def table(runs: list[dict[str, Any]]) -> str:
  """The runs as a Markdown table, a row for each agent and environment."""
  rows = [
    "| agent | environment | solved | episodes to solve: median (each seed) |",
    "| --- | --- | --- | --- |",
  ]
  groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
  for run in runs:
    groups.setdefault((run["label"], run["env"]), []).append(run)
  for (label, env), group in groups.items():
    group.sort(key=lambda run: run["seed"])
    solved = [r["solved_episode"] for r in group if r["solved_episode"] is not None]
    each = ", ".join(
      str(r["solved_episode"])
      if r["solved_episode"] is not None
      else f"not in {r['max_episodes']} (regret {r['average_regret']:.2f})"
      for r in group
    )
    median = f"{statistics.median(solved):g} ({each})" if solved else f"– ({each})"
    rows.append(f"| {label} | `{env}` | {len(solved)}/{len(group)} | {median} |")
  return "\n".join(rows)


def run_all(
  todo: list[tuple[Any, ...]],
  run: Callable[..., dict[str, Any]],
  path: pathlib.Path,
  workers: int,
) -> int:
  """Runs `run(*task)` for each task and appends what it returns to `path`.

  Each has a new process, so that nothing of one run is left in the next. Returns how
  many failed; the others' results are kept, whatever became of those.
  """
  failed = 0
  with concurrent.futures.ProcessPoolExecutor(workers, max_tasks_per_child=1) as pool:
    futures = {pool.submit(run, *task): task for task in todo}
    for future in concurrent.futures.as_completed(futures):
      if (error := future.exception()) is not None:
        failed += 1
        print(f"{futures[future]} failed: {error!r}", file=sys.stderr, flush=True)
        continue
      line = json.dumps(future.result())
      with path.open("a") as f:
        f.write(line + "\n")
      print(line, flush=True)
  return failed


def read(path: pathlib.Path) -> list[dict[str, Any]]:
  """The finished runs."""
  path.parent.mkdir(parents=True, exist_ok=True)
  return (
    [json.loads(line) for line in path.read_text().splitlines()]
    if path.exists()
    else []
  )


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--output", default="results/learning")
  parser.add_argument("--episodes", type=int, default=2000)
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
  parser.add_argument("--table", action="store_true", help="only print the table")
  args = parser.parse_args()

  path = pathlib.Path(args.output) / "runs.jsonl"
  done = {(r["label"], r["env"], r["seed"], r["max_episodes"]) for r in read(path)}
  todo = [(*t, args.episodes) for t in tasks(args.seeds)]
  todo = [] if args.table else [t for t in todo if t not in done]
  failed = run_all(todo, run_task, path, args.workers)
  print(table(read(path)))
  if failed:
    sys.exit(f"{failed} of {len(todo)} runs failed; run it again to repeat them.")


if __name__ == "__main__":
  main()
