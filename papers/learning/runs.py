"""What agents learn: claims about their parts, gymnasium, and games.

  python -m explorax.papers.learning.runs  # all missing runs, many hours of a core
  python -m explorax.papers.learning.runs --only=memory,sparse,recurrent,breakout
  python -m explorax.papers.learning.runs --only=cartpole,mountain_car,acrobot
  python -m explorax.papers.learning.runs --only=pong,freeway,montezuma
  python -m explorax.papers.learning.runs --table=results/learning/runs.jsonl

On Deep Sea a run ends when it is solved by bsuite's rule. Its episodes to solve against
its size are a figure (`reproduce --figure=tdu/scaling`). Two of the claims:

- A recurrent agent solves a task that needs memory, and one without memory does not.
- Temporally-extended exploration finds a sparse reward, and ε-greedy does not.

On gymnasium's environments, agents have the settings that `--env=gym:` selects
(`goals.py` writes their table).

Each run is a task with one thread, whose results are kept. Replay is in memory and
seeded, so that a run can be repeated bit for bit on one machine.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from scipy import stats

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import output, overrides, presets, threads, versions
from explorax.experiments.recording import console
from explorax.experiments.recording import statistics as intervals
from explorax.experiments.reports import markdown
from explorax.experiments.runners import core, local
from explorax.experiments.tasks import pool, store, types

Row = dict[str, Any]


class Experiment(NamedTuple):
  """Agents compared in environments.

  Attributes:
    envs: the environments' names.
    agents: label → (preset, settings for `--set` that differ from the preset).
    seeds: the number of seeds.
    first_seed: the first of them.
    episodes: the maximum number of episodes of a run that ends when it solves the
      environment; None for a run of `steps` steps.
    steps: environment steps of training; None if `episodes` is given.
    eval_every: environment steps between two evaluations of the greedy policy; None
      for no evaluation: what is found in training counts.
    eval_episodes: episodes of each.
  """

  envs: tuple[str, ...]
  agents: dict[str, tuple[str, tuple[str, ...]]]
  seeds: int
  episodes: int | None = None
  steps: int | None = None
  eval_every: int | None = None
  eval_episodes: int = 100
  first_seed: int = 0


# Double DQN's settings for few frames of Atari: the network of data-efficient Rainbow
# (van Hasselt et al., 2019), and what paper 3's table does in millions of steps is done
# in ten thousands.
_FEW_FRAMES = (
  "torso=data_efficient",
  "hidden_sizes=256",
  "random_steps=0",
  "min_replay_size=10_000",
  "replay_capacity=100_000",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "target_update_period=500",
  "n_step=3",
)
# An update in each step, returns of ten steps, and Rainbow's replay and duelling heads.
_MANY_UPDATES = (
  "torso=data_efficient",
  "hidden_sizes=()",
  "head_size=256",
  "duelling=True",
  "random_steps=0",
  "min_replay_size=2_000",
  "replay_capacity=100_000",
  "priority_exponent=0.5",
  "importance_exponent=0.4",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "adam_eps=1e-8",
  "max_gradient_norm=10.0",
  "target_update_period=1000",
  "n_step=10",
  "updates_per_step=1.0",
  "exploration=EpsilonGreedy(Linear(1.0, 0.02, steps=20_000))",
)
# It would learn later.
_ACTING = ("random_steps=0", "min_replay_size=100_000", "replay_capacity=100_000")
_OF_MEMBERS = (
  "bootstrapped_r2d2",
  "bootstrapped_r2d2_peng",
  "tdu_r2d2",
  "tdu_r2d2_l",
  "tdu_r2d2_no_prior",
  "tdu_r2d2_no_prior_l",
)


def _decreasing(rule: str) -> str:
  """A setting: the rule with an ε that decreases from 1 to 0.01 in 100,000 steps."""
  return f"exploration={rule}(Linear(1.0, 0.01, steps=100_000))"


def _presets(*names: str) -> dict[str, tuple[str, tuple[str, ...]]]:
  return {name: (name, ()) for name in names}


def _on_gym(name: str, agents: Sequence[str], steps: int) -> Experiment:
  """Ten evaluations of 5 episodes; seeds 0 and 1 had a part in the settings."""
  return Experiment(
    (f"gym:{name}",),
    _presets(*agents),
    seeds=5,
    first_seed=2,
    steps=steps,
    eval_every=steps // 10,
    eval_episodes=5,
  )


# bsuite:deep_sea/0 has N = 10.
EXPERIMENTS = {
  "distinct_priors": Experiment(
    ("bsuite:deep_sea/0",),
    {
      "tdu": ("tdu", ()),
      "tdu, distinct target priors": ("tdu", ("target_prior=distinct",)),
    },
    seeds=5,
    episodes=2000,
  ),
  "memory": Experiment(
    ("bsuite:memory_len/9",),
    _presets(
      "dqn",
      "r2d2",
      "r2d2_retrace",
      "r2d2_peng",
      "r2d2_tree_backup",
      "r2d2_harutyunyan",
      "r2d2_sarsa_lambda",
      *_OF_MEMBERS,
    ),
    seeds=3,
    steps=11_000,
    eval_every=2_200,
  ),
  "sparse": Experiment(
    ("jax:gridworld/30,time_limit=150",),
    _presets("r2d2_ez", "r2d2", "r2d2_sarsa_lambda", "r2d2_sarsa_lambda_rnd"),
    seeds=10,
    steps=20_000,
    eval_every=5_000,
  ),
  "recurrent": Experiment(
    ("bsuite:deep_sea/0",),
    _presets("r2d2", "r2d2_peng", *_OF_MEMBERS),
    seeds=3,
    episodes=2000,
  ),
  "breakout": Experiment(
    ("jax:breakout",),
    _presets("double_dqn", "rainbow", "rainbow_epsilon", "rainbow_ez", "rainbow_cts"),
    seeds=3,
    steps=20_000,
    eval_every=5_000,
    eval_episodes=20,
  ),
  "pong": Experiment(
    ("atari:Pong",),
    {"double_dqn": ("double_dqn", _MANY_UPDATES)},
    seeds=1,
    steps=400_000,
    eval_every=25_000,
    eval_episodes=3,
  ),
  "freeway": Experiment(
    ("atari:Freeway",),
    {
      label: ("double_dqn", (*_FEW_FRAMES, _decreasing(rule)))
      for label, rule in (("ε-greedy", "EpsilonGreedy"), ("εz-greedy", "EzGreedy"))
    },
    seeds=3,
    steps=150_000,
    eval_every=15_000,
    eval_episodes=3,
  ),
  "montezuma": Experiment(
    ("atari:MontezumaRevenge/ngu,max_frames=18_000",),
    {
      "random actions": ("double_dqn", (*_ACTING, "exploration=EpsilonGreedy(1.0)")),
      "random actions, repeated": (
        "double_dqn",
        (*_ACTING, "exploration=EzGreedy(1.0)"),
      ),
      # β: Bellemare et al. (2016).
      "counts": (
        "double_dqn",
        (
          *_FEW_FRAMES,
          "exploration=EpsilonGreedy(Linear(1.0, 0.05, steps=10_000))",
          "bonus=PseudoCounts()",
          "beta=0.05",
        ),
      ),
      # Only the policy of the greatest β explores: there is one.
      "ngu": (
        "ngu",
        (
          "torso=data_efficient",
          "hidden_sizes=256",
          "lstm_size=256",
          "head_size=256",
          "num_policies=1",
          "discount=0.99",
          "exploration=EpsilonGreedy(0.05)",
          "replay_capacity=60_000",
          "min_replay_size=2_000",
          "batch_size=8",
          "sequence_length=40",
          "sequence_period=40",
        ),
      ),
    },
    seeds=3,
    steps=50_000,
  ),
  "cartpole": _on_gym(
    "CartPole-v1",
    ("double_dqn", "rainbow", "tdu", "bootstrapped_dqn", "r2d2"),
    steps=50_000,
  ),
  "mountain_car": _on_gym("MountainCar-v0", ("dqn_ez", "dqn"), steps=50_000),
  "acrobot": _on_gym("Acrobot-v1", ("double_dqn",), steps=50_000),
  "lunar_lander": _on_gym("LunarLander-v3", ("double_dqn",), steps=100_000),
}


def tasks(names: Sequence[str]) -> list[types.Task]:
  """One task for each run of the experiments, ordered by seed."""
  return [
    types.Task(
      f"{name}/{label.replace(', ', '_').replace(' ', '_')}_{env_index}_seed{seed}",
      {
        "experiment": name,
        "label": label,
        "preset": preset,
        "set": settings,
        "env": env,
        "seed": seed,
        **{field: getattr(experiment, field) for field in _OF_A_RUN},
      },
    )
    for name in names
    for experiment in [EXPERIMENTS[name]]
    for seed in range(experiment.first_seed, experiment.first_seed + experiment.seeds)
    for env_index, env in enumerate(experiment.envs)
    for label, (preset, settings) in experiment.agents.items()
  ]


_OF_A_RUN = ("episodes", "steps", "eval_every", "eval_episodes")


def train(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Trains an agent with one seed; returns a row of `runs.jsonl`."""
  began = time.process_time()
  env, seed = settings["env"], settings["seed"]
  preset = presets.PRESETS[settings["preset"]]
  config = overrides.apply(preset.config_for(env), settings["set"])
  environment = environments.make(env, seed=seed)
  agent = preset.make_agent(config, environments.spec(environment))
  solves = settings["episodes"] is not None
  solved = environments.solved_rule(env) if solves else None
  regret = math.nan
  trained: list[float] = []
  rooms = 1.0
  evaluations: list[tuple[int, float]] = []
  evaluated_after: list[float] = []  # CPU seconds.

  def on_episode(episode: core.Episode) -> None:
    nonlocal regret, rooms
    if solved is None:
      trained.append(episode.episode_return)
      rooms = episode.metrics.get("rooms_so_far", 1.0)
      context.report(episode.env_steps / settings["steps"])
      return
    bad = episode.metrics["total_bad_episodes"]
    regret = bad / episode.episode
    solved.update(episode.episode, bad)
    context.report(episode.episode / settings["episodes"])

  def on_evaluation(done: core.Evaluation) -> None:
    evaluations.append((done.env_steps, done.mean_return))
    evaluated_after.append(round(time.process_time() - began, 1))

  result = local.run(
    agent,
    environment,
    config_lib.RunConfig(
      seed=seed,
      replay="memory",
      episodes=settings["episodes"],
      steps=settings["steps"],
      eval_every=settings["eval_every"],
      eval_episodes=settings["eval_episodes"],
    ),
    core.Hooks(
      on_episode=on_episode,
      stop=lambda: solved is not None and solved.solved_episode is not None,
      on_evaluation=on_evaluation,
    ),
    evaluation_environment=environments.make(env, seed=seed + 1000)
    if settings["eval_every"] is not None
    else None,
  )
  row = {
    "experiment": settings["experiment"],
    "label": settings["label"],
    "env": env,
    "seed": seed,
    "env_steps": result.env_steps,
    "learner_updates": result.learner_updates,
    **_made_by(),
    "cpu_seconds": round(time.process_time() - began, 1),
  }
  if solved is not None:
    row |= {
      "max_episodes": settings["episodes"],
      "solved_episode": solved.solved_episode,
      "episodes": result.episodes,
      "average_regret": regret,
    }
  elif settings["eval_every"] is None:
    row |= {
      "episodes": len(trained),
      "rewarded_episodes": sum(value > 0 for value in trained),
      "greatest_return": max(trained, default=0.0),
      "rooms": rooms,
    }
  else:
    row |= {
      "training_first_100": statistics.fmean(trained[:100]),
      "training_last_100": statistics.fmean(trained[-100:]),
      "evaluations": evaluations,
      "evaluated_after": evaluated_after,
    }
  return row


def _made_by() -> dict[str, str]:
  """The commit, and the versions that matter to what is learnt."""
  made = versions.collect()
  packages = ("jax", "dm-haiku", "optax", "bsuite", "gymnasium", "ale-py")
  numbers = [f"{name} {made['packages'][name]}" for name in packages]
  return {
    "commit": (made["git_commit"] or "unknown")[:7],
    "versions": ", ".join([f"Python {made['python']}", *numbers]),
  }


def table(runs: Sequence[Row]) -> str:
  """Markdown tables: of runs that end when solved, with evaluations, and without."""
  groups: dict[tuple[str, str], list[Row]] = {}
  for run in sorted(runs, key=lambda run: run["seed"]):
    groups.setdefault((run["label"], run["env"]), []).append(run)
  tables = []
  for mark, row_of in (
    ("solved_episode", _solved_row),
    ("evaluations", _evaluated_row),
    ("rooms", _explored_row),
  ):
    rows = [row_of(group) for group in groups.values() if mark in group[0]]
    if rows:
      tables.append(markdown.table(rows))
  return "\n\n".join(tables)


def _solved_row(group: Sequence[Row]) -> Row:
  limit = group[0]["max_episodes"]
  episodes = [math.inf if (n := r["solved_episode"]) is None else n for r in group]

  def words(number: float) -> str:
    return f"> {limit}" if number > limit else f"{number:g}"

  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "solved": f"{sum(map(math.isfinite, episodes))}/{len(group)}",
    "episodes to solve: median (each seed)": (
      f"{words(statistics.median(episodes))} ({', '.join(map(words, episodes))})"
    ),
  }


def _evaluated_row(group: Sequence[Row]) -> Row:
  last = [run["evaluations"][-1][1] for run in group]
  trained = [run["training_last_100"] for run in group]
  each = ", ".join(f"{value:.3g}" for value in last)
  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "last evaluation: mean, 95 % interval (each seed)": f"{_mean(last)} ({each})",
    "last 100 training episodes: mean": _mean(trained),
  }


def _mean(values: Sequence[float]) -> str:
  """The mean with Student's t-interval, which equal values do not have.

  For a share, of zeros and ones, the interval is Clopper and Pearson's.
  """
  if set(values) == {0.0, 1.0}:
    low, high = _interval_of_share(round(sum(values)), len(values))
    return f"{statistics.fmean(values):.3g} [{low:.3g}, {high:.3g}]"
  mean = intervals.mean(values)
  return mean.words() if mean.high > mean.low else f"{mean.value:.3g}"


def _interval_of_share(found: int, number: int) -> tuple[float, float]:
  """Clopper and Pearson's 95 % interval; all shares if there is no number."""
  if not number:  # A run may end before its first episode does.
    return 0.0, 1.0
  interval = stats.binomtest(found, number).proportion_ci()
  return interval.low, interval.high


def _explored_row(group: Sequence[Row]) -> Row:
  each = {
    name: [run[name] for run in group]
    for name in ("episodes", "rewarded_episodes", "rooms")
  }
  rewarded, episodes = sum(each["rewarded_episodes"]), sum(each["episodes"])
  low, high = _interval_of_share(rewarded, episodes)
  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "steps of each seed": f"{group[0]['env_steps']:,}",
    "episodes": episodes,
    "with a reward": rewarded,
    "share of them, 95 % interval": f"{low:.2%} to {high:.2%}",
    "rooms of each seed": ", ".join(f"{value:.0f}" for value in each["rooms"]),
  }


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--output", default="results/learning")
  parser.add_argument("--only", default=",".join(EXPERIMENTS), metavar="NAME,...")
  parser.add_argument("--workers", type=int, help="parallel tasks [one per core]")
  parser.add_argument(
    "--table", type=pathlib.Path, help="compute nothing; print the table of these runs"
  )
  args = parser.parse_args()
  names = args.only.split(",")
  for name in names:
    if name not in EXPERIMENTS:
      parser.error(f"no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}.")
  code = 0
  if args.table is not None:
    runs = [json.loads(line) for line in args.table.read_text().splitlines()]
  else:
    threads.use_one_thread()  # With one worker, this process computes.
    runs, code = compute(names, args.output, args.workers)
  print(table(runs))
  return code


def compute(
  names: Sequence[str], folder: str, workers: int | None
) -> tuple[list[Row], int]:
  """Computes the missing runs; returns the rows of all finished ones, and a code."""
  directory = output.RunDirectory.create(folder)
  with pool.Pool(console.Console(sys.stdout), workers=workers) as where:
    done = where.compute(
      "explorax.papers.learning.runs:train", tasks(names), store.Store(directory)
    )
    code = where.exit_code
  runs = [{**each.results, "seconds": round(each.seconds, 1)} for each in done if each]
  lines = "".join(json.dumps(run) + "\n" for run in runs)
  directory.write("runs.jsonl", lambda file: file.write(lines.encode()))
  return runs, code


if __name__ == "__main__":
  sys.exit(main())
