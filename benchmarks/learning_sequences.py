"""What the sequence agents learn on problems small enough for two cores.

  python benchmarks/learning_sequences.py                     # runs, or goes on
  python benchmarks/learning_sequences.py --only=memory,maze
  python benchmarks/learning_sequences.py --table             # only prints
  python benchmarks/learning_sequences.py --curve=curve.png   # draws the maze's

Three claims: a recurrent agent solves a task that needs memory, and one without does
not; temporally-extended exploration finds a sparse reward, and ε-greedy does not; and
episodic novelty of learned controllable states covers a maze that is full of noise,
where random projections and random network distillation do not.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time
from typing import Any, NamedTuple

import learning

from explorax.experiments import threads


class Experiment(NamedTuple):
  """Agents compared in one environment.

  Attributes:
    env: the environment's name.
    steps: of training.
    eval_every: environment steps between two evaluations.
    metric: what is reported: of each evaluation episode, its `return` or one of the
      environment's metrics.
    seeds: how many.
    agents: label → (preset, `--set` of the settings that differ from it).
  """

  env: str
  steps: int
  eval_every: int
  metric: str
  seeds: int
  agents: dict[str, tuple[str, tuple[str, ...]]]


EVAL_EPISODES = 100
# Episodes in a small maze are short: paper 2's windows of 50 would be mostly padding.
_SHORT = ("sequence_length=10", "sequence_period=5", "batch_size=32")
EXPERIMENTS = {
  "memory": Experiment(
    "bsuite:memory_len/9",
    33_000,
    11_000,
    "return",
    3,
    {"r2d2": ("r2d2", ()), "dqn": ("dqn", ())},
  ),
  "sparse": Experiment(
    "jax:gridworld/30,time_limit=150",
    20_000,
    5_000,
    "return",
    10,
    {"r2d2_ez": ("r2d2_ez", ()), "r2d2": ("r2d2", ())},
  ),
  "maze": Experiment(
    "jax:disco_maze/5",
    30_000,
    5_000,
    "coverage",
    3,
    {
      "ngu": ("ngu", _SHORT),
      "ngu, random projections": ("ngu", (*_SHORT, "bonus.states=random")),
      "r2d2_rnd": ("r2d2_rnd", _SHORT),
    },
  ),
}


def run_task(name: str, label: str, seed: int) -> dict[str, Any]:
  """One run: the metric in training, and in each evaluation of the greedy policy."""
  threads.use_one_thread()
  from explorax import environments
  from explorax.experiments import config as config_lib
  from explorax.experiments import overrides, presets
  from explorax.experiments.runners import core, local

  experiment = EXPERIMENTS[name]
  preset_name, settings = experiment.agents[label]
  preset = presets.PRESETS[preset_name]
  config = overrides.apply(preset.config_for(experiment.env), list(settings))
  environment = environments.make(experiment.env, seed=seed)
  agent = preset.make_agent(config, environments.spec(environment))
  evaluations: list[tuple[int, float]] = []
  trained: list[float] = []

  def measure(episode: Any) -> float:
    if experiment.metric == "return":
      return float(episode.episode_return)
    return float(episode.metrics[experiment.metric])

  start = time.monotonic()
  result = local.run(
    agent,
    environment,
    config_lib.RunConfig(
      seed=seed,
      replay="memory",
      steps=experiment.steps,
      eval_every=experiment.eval_every,
      eval_episodes=EVAL_EPISODES,
    ),
    core.Hooks(
      on_episode=lambda episode: trained.append(measure(episode)),
      on_evaluation=lambda done: evaluations.append(
        (done.env_steps, statistics.fmean(map(measure, done.episodes)))
      ),
    ),
    evaluation_environment=environments.make(experiment.env, seed=seed + 1000),
  )
  return {
    "experiment": name,
    "label": label,
    "env": experiment.env,
    "seed": seed,
    "metric": experiment.metric,
    "env_steps": result.env_steps,
    "learner_updates": result.learner_updates,
    "training_first_100": statistics.fmean(trained[:100]),
    "training_last_100": statistics.fmean(trained[-100:]),
    "evaluations": evaluations,
    "seconds": round(time.monotonic() - start, 1),
  }


def table(runs: list[dict[str, Any]]) -> str:
  """The runs as a Markdown table, a row for each agent of an experiment."""
  rows = [
    "| agent | environment | metric | last evaluation: mean (each seed) |",
    "| --- | --- | --- | --- |",
  ]
  groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
  for run in runs:
    groups.setdefault((run["experiment"], run["label"]), []).append(run)
  for (_, label), group in sorted(groups.items()):
    group.sort(key=lambda run: run["seed"])
    last = [run["evaluations"][-1][1] for run in group]
    each = ", ".join(f"{value:.3g}" for value in last)
    env, metric = group[0]["env"], group[0]["metric"]
    rows.append(
      f"| {label} | `{env}` | {metric} | {statistics.fmean(last):.3g} ({each}) |"
    )
  return "\n".join(rows)


def draw(runs: list[dict[str, Any]], path: pathlib.Path) -> None:
  """The maze's coverage in evaluation: each seed, and the mean over them."""
  from matplotlib import figure

  styles = {"ngu": "-", "ngu, random projections": "--", "r2d2_rnd": ":"}
  drawing = figure.Figure(figsize=(6.4, 4.0), layout="constrained")
  axes = drawing.subplots()
  for label, style in styles.items():
    curves = [
      dict(run["evaluations"])
      for run in runs
      if (run["experiment"], run["label"]) == ("maze", label)
    ]
    if not curves:
      continue
    every = EXPERIMENTS["maze"].eval_every
    # An evaluation comes at the end of the episode in which its step is passed.
    points = [[(round(s / every) * every, v) for s, v in c.items()] for c in curves]
    (line,) = axes.plot(
      *zip(*(_mean(column) for column in zip(*points, strict=True)), strict=True),
      style,
      label=label,
      linewidth=2,
    )
    for seed in points:
      axes.plot(*zip(*seed, strict=True), style, color=line.get_color(), alpha=0.35)
  axes.set(
    xlabel="environment steps",
    ylabel="share of positions visited in an episode",
    title=f"{EXPERIMENTS['maze'].env}, greedy policy, three seeds and their mean",
    ylim=(0, None),
  )
  axes.legend()
  axes.grid(alpha=0.3)
  drawing.savefig(path, dpi=150)


def _mean(column: tuple[tuple[int, float], ...]) -> tuple[int, float]:
  return column[0][0], statistics.fmean(value for _, value in column)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--output", default="results/learning_sequences")
  parser.add_argument("--only", default=",".join(EXPERIMENTS), metavar="NAME,...")
  parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
  parser.add_argument("--table", action="store_true", help="only print the table")
  parser.add_argument("--curve", type=pathlib.Path, help="only draw the maze's curves")
  args = parser.parse_args()
  for name in args.only.split(","):
    if name not in EXPERIMENTS:
      parser.error(f"no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}.")

  path = pathlib.Path(args.output) / "runs.jsonl"
  if args.curve is not None:
    draw(learning.read(path), args.curve)
    return
  done = {(r["experiment"], r["label"], r["seed"]) for r in learning.read(path)}
  todo = [
    (name, label, seed)
    for name in args.only.split(",")
    for seed in range(EXPERIMENTS[name].seeds)
    for label in EXPERIMENTS[name].agents
    if (name, label, seed) not in done
  ]
  todo = [] if args.table else todo
  failed = learning.run_all(todo, run_task, path, args.workers)
  print(table(learning.read(path)))
  if failed:
    sys.exit(f"{failed} of {len(todo)} runs failed; run it again to repeat them.")


if __name__ == "__main__":
  main()
