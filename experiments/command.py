"""The command line of `run.py`: its flags, its help, and what a command asks for."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from explorax.experiments import errors, flag_table

RUNNERS = ("local", "device", "distributed")
REPLAYS = ("reverb", "memory")
DEVICE_REPLAY = "device"  # The only one of the device runner.

ATARI_ENVS = 8  # That the device runner steps together, where nothing was said.

NUM_ACTORS = 4  # Of the distributed runner, where nothing was said.

ENVIRONMENT_TIMEOUT = 300  # Seconds, in the distributed runner.

EVAL_EPISODES = 5  # Of an evaluation, where nothing was said.

_MAX_SEED = 2**32 - 1  # numpy's generators take no more.
MAX_SEEDS = 10_000  # At the same time.

_INTRODUCTION = """\
Runs an exploration agent in an environment and keeps what came of it.

  python -m explorax.experiments.run --agent=NAME --env=KIND:NAME [flags]

Examples
  TDU on Deep Sea (N = 10), 1000 episodes:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --episodes=1000

  The same without Reverb and TensorFlow, with two settings of the agent changed:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --replay=memory --set batch_size=64 --set hidden_sizes=100,100

  The same, evaluated every 1000 steps, with a video of the last evaluation:
    python -m explorax.experiments.run --agent=tdu --env=bsuite:deep_sea/0 \\
      --episodes=1000 --eval_every=1000 --video

  Deep Sea in JAX, acting and learning in one compiled program, without Reverb:
    python -m explorax.experiments.run --agent=tdu --env=jax:deep_sea/20 \\
      --steps=20000 --runner=device

  The same with 30 seeds at the same time:
    python -m explorax.experiments.run --agent=tdu --env=jax:deep_sea/20 \\
      --steps=20000 --runner=device --seeds=30

  NGU on eight games at once, stepped in C++ threads while the device learns:
    python -m explorax.experiments.run --agent=ngu --env=atari:MontezumaRevenge \\
      --steps=1000000 --runner=device --num_envs=8

  Four actors, a learner and replay in processes of their own, on Ray:
    python -m explorax.experiments.run --agent=r2d2 --env=gym:CartPole-v1 \\
      --steps=50000 --runner=distributed --num_actors=4

  50,000 steps of a gymnasium environment, into a directory of your choice:
    python -m explorax.experiments.run --agent=dqn --env=gym:CartPole-v1 \\
      --steps=50000 --seed=1 --output=results/cartpole

  An environment of your own (a function that returns a dm_env or gymnasium one):
    python -m explorax.experiments.run --agent=dqn --env=my_module:make_env \\
      --episodes=500
"""

_OUTRO = """\
Ctrl-C ends a run cleanly, with a checkpoint: the same command again goes on.
Exit codes: 0 finished, 1 failed on the way, 2 could not start, 130 Ctrl-C, 143 SIGTERM.
"""


@dataclasses.dataclass(frozen=True)
class Command:
  """What the command line asks for.

  Attributes:
    agent: name of a preset; '' if only something is to be shown.
    settings: the `field=value` of each `--set`.
    env: `kind:name`; '' if only something is to be shown.
    seed: of everything random.
    num_seeds: how many, from `seed` on, are trained at the same time.
    episodes: after how many the run ends; None for no such end.
    steps: after how many environment steps it ends; None for no such end.
    runner: one of `RUNNERS`.
    num_envs: environments that the device runner steps side by side for a seed, or
      each actor of the distributed runner; None of the local runner.
    num_actors: processes that act, in the distributed runner; None in others, as the
      next six.
    replay_shards: processes that hold replay.
    pull_every: environment steps of an actor between two looks at the weights; None:
      the runner's own.
    rate_tolerance: environment steps that actors or the learner may be ahead by; None:
      the runner's own.
    learner_gpus: GPUs that the learner takes.
    ray_address: of a cluster; None: this machine.
    environment_timeout: seconds after which an environment hangs.
    replay: one of `REPLAYS`; of the device runner, `DEVICE_REPLAY`.
    eval_every: environment steps between two evaluations; None for no such interval.
    eval_episodes: episodes of each evaluation.
    video: whether evaluation episodes are recorded as videos.
    max_env_failures: after how many crashes in a row an environment is made anew.
    checkpoint_every: environment steps between two checkpoints; None: for time alone.
    checkpoint_minutes: between two checkpoints.
    checkpoint_replay: whether they hold replay; None: where resuming is exact then.
    keep_checkpoints: how many of the newest are kept.
    keep_checkpoint_hours: beside these, one of each so many hours; None for none.
    resume: whether a run that the directory holds may be gone on with.
    output: the run's directory.
    show: `help`, `agents` or `environments`, to be shown instead of a run; or ''.
    debug: let errors show where in the code they arose.
  """

  agent: str
  settings: tuple[str, ...]
  env: str
  seed: int
  num_seeds: int
  episodes: int | None
  steps: int | None
  runner: str
  num_envs: int | None
  num_actors: int | None
  replay_shards: int | None
  pull_every: int | None
  rate_tolerance: int | None
  learner_gpus: int | None
  ray_address: str | None
  environment_timeout: int | None
  replay: str
  eval_every: int | None
  eval_episodes: int
  video: bool
  max_env_failures: int
  checkpoint_every: int | None
  checkpoint_minutes: int
  checkpoint_replay: bool | None
  keep_checkpoints: int
  keep_checkpoint_hours: int | None
  resume: bool
  output: str
  show: str
  debug: bool

  @property
  def evaluates(self) -> bool:
    """Whether the run has evaluations at all."""
    return self.eval_every is not None or self.video

  @property
  def is_batched(self) -> bool:
    """Whether the host steps many environments together."""
    return self.runner == "device" and self.env.startswith("atari:")


def parse(argv: Sequence[str]) -> Command:
  """Reads a command line, its program's name left out.

  Raises:
    SetUpError: for an unknown flag, a value that does not fit, a flag that nothing
      would read, or no agent or environment.
  """
  given = flag_table.parse(_FLAGS, argv)
  shown = {"help": "help", "list_agents": "agents", "list_envs": "environments"}
  show = next((what for flag, what in shown.items() if given[flag]), "")
  agent, env, seed = given["agent"] or "", given["env"] or "", given["seed"]
  if not show and not agent:
    raise errors.SetUpError("--agent is missing; --list_agents shows the names.")
  if not show and not env:
    raise errors.SetUpError("--env is missing; --list_envs shows the names.")
  eval_every, eval_episodes = given["eval_every"], given["eval_episodes"]
  if eval_episodes is not None and eval_every is None and not given["video"]:
    raise errors.SetUpError(
      f"--eval_episodes={eval_episodes} has no evaluation to speak of; give "
      "--eval_every=STEPS as well."
    )
  replay, num_envs = given["replay"], given["num_envs"]
  if given["runner"] == "device":
    if replay is not None:
      raise errors.SetUpError(
        f"--replay={replay} is for the local runner; the device runner has a replay of "
        "its own: leave the flag out."
      )
    if env and not env.startswith(("jax:", "atari:")):
      raise errors.SetUpError(
        "--runner=device takes environments written in JAX, as jax:deep_sea/20, and "
        f"Atari games, and {env!r} is neither; leave the flag out, or choose a jax: or "
        "atari: environment (--list_envs)."
      )
    replay = DEVICE_REPLAY
    if num_envs is None:
      num_envs = ATARI_ENVS if env.startswith("atari:") else 1
  distributed = given["runner"] == "distributed"
  if distributed and num_envs is None:
    num_envs = 1
  if given["runner"] == "local" and num_envs is not None:
    raise errors.SetUpError(
      f"--num_envs={num_envs} is for --runner=device and --runner=distributed; the "
      "local runner acts in one environment: leave the flag out, or add one of those."
    )
  _check_distributed(given)
  num_seeds = given["seeds"]
  if num_seeds > 1:
    _check_seeds(given)
  return Command(
    agent=agent,
    settings=tuple(given["set"]),
    env=env,
    seed=seed,
    num_seeds=num_seeds,
    episodes=given["episodes"],
    steps=given["steps"],
    runner=given["runner"],
    num_envs=num_envs,
    num_actors=(given["num_actors"] or NUM_ACTORS) if distributed else None,
    replay_shards=(given["replay_shards"] or 1) if distributed else None,
    pull_every=given["pull_every"],
    rate_tolerance=given["rate_tolerance"],
    learner_gpus=(given["learner_gpus"] or 0) if distributed else None,
    ray_address=given["ray_address"],
    environment_timeout=(given["environment_timeout"] or ENVIRONMENT_TIMEOUT)
    if distributed
    else None,
    replay=replay or "reverb",
    eval_every=eval_every,
    eval_episodes=EVAL_EPISODES if eval_episodes is None else eval_episodes,
    video=given["video"],
    max_env_failures=given["max_env_failures"],
    checkpoint_every=given["checkpoint_every"],
    checkpoint_minutes=given["checkpoint_minutes"],
    checkpoint_replay=given["checkpoint_replay"],
    keep_checkpoints=given["keep_checkpoints"],
    keep_checkpoint_hours=given["keep_checkpoint_hours"],
    resume=given["resume"],
    output=given["output"] or default_output(agent, env, seed, num_seeds),
    show=show,
    debug=given["debug"],
  )


_OF_DISTRIBUTED = (
  "num_actors",
  "replay_shards",
  "pull_every",
  "rate_tolerance",
  "learner_gpus",
  "ray_address",
  "environment_timeout",
)


def _check_distributed(given: dict[str, Any]) -> None:
  """Refuses what the distributed runner alone reads."""
  for name in _OF_DISTRIBUTED if given["runner"] != "distributed" else ():
    if given[name] is not None:
      raise errors.SetUpError(
        f"--{name}={given[name]} is for --runner=distributed; leave the flag out, or "
        "add that one."
      )


def _check_seeds(given: dict[str, Any]) -> None:
  """Refuses many seeds where they cannot be trained at the same time."""
  count, first = given["seeds"], given["seed"]
  if (given["env"] or "").startswith("atari:"):
    raise errors.SetUpError(
      f"--seeds={count} is for environments written in JAX; of Atari games, run the "
      "command once for each --seed."
    )
  if given["runner"] != "device":
    raise errors.SetUpError(
      f"--seeds={count} trains many seeds in one program, which only --runner=device "
      "does (environments written in JAX); add it, or run the command once for each "
      "--seed."
    )
  if given["eval_every"] is not None or given["video"]:
    raise errors.SetUpError(
      f"--seeds={count} goes without evaluations and videos, which are made of one "
      "seed; leave out --eval_every and --video, or --seeds."
    )
  if first + count - 1 > _MAX_SEED:
    raise errors.SetUpError(
      f"--seed={first} and --seeds={count} go beyond the last seed, {_MAX_SEED}; use "
      "a smaller --seed."
    )


def default_output(agent: str, env: str, seed: int, num_seeds: int = 1) -> str:
  """`runs/tdu-bsuite_deep_sea_0-seed0`: where a run goes by itself."""
  seeds = f"seed{seed}" if num_seeds == 1 else f"seeds{seed}-{seed + num_seeds - 1}"
  return f"runs/{agent}-{re.sub(r'[^A-Za-z0-9.-]+', '_', env)}-{seeds}"


def help_text() -> str:
  """What a stranger needs: examples, and our flags in groups."""
  return flag_table.help_text(_INTRODUCTION, _FLAGS, _OUTRO)


_FLAGS = {
  "What to run": (
    flag_table.Flag("agent", "=NAME", None, "The agent (--list_agents)."),
    flag_table.Flag(
      "set",
      " FIELD=VALUE",
      [],
      "Changes a setting of the agent; may be given again and again. A dot leads into\n"
      "a group: --set exploration.epsilon=0.1. Tuples: --set hidden_sizes=50,50.\n"
      "A name that does not exist lists those that do.",
    ),
    flag_table.Flag(
      "env",
      "=KIND:NAME",
      None,
      "The environment (--list_envs): bsuite:deep_sea/0, gym:CartPole-v1, or\n"
      "module:function for your own.",
    ),
    flag_table.Flag(
      "seed",
      "=INT",
      0,
      "Of everything random, in the agent and in the environment. [0]",
      parser=flag_table.WholeNumber(0, _MAX_SEED),
    ),
    flag_table.Flag(
      "seeds",
      "=INT",
      1,
      "How many seeds to train at the same time, --seed being the first; with\n"
      "--runner=device. Each leaves a run's files in seedSEED/, all together\n"
      "curve.png and summary.json. [1]",
      parser=flag_table.WholeNumber(1, MAX_SEEDS),
    ),
  ),
  "How long (whichever is reached first)": (
    flag_table.Flag(
      "episodes",
      "=INT",
      None,
      "Ends the run after so many episodes. [bsuite's own number on bsuite; elsewhere\n"
      "give this or --steps]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "steps",
      "=INT",
      None,
      "Ends the run after the episode in which so many environment steps are reached\n"
      "(--runner=device: in mid-episode, at the report after them).",
      parser=flag_table.WholeNumber(1),
    ),
  ),
  "Evaluation (episodes of the evaluation policy, in an environment of their own)": (
    flag_table.Flag(
      "eval_every",
      "=STEPS",
      None,
      "Evaluates after the episode (--runner=device: at the report) in which a\n"
      "multiple of so many environment steps is passed, and at the end of the run.\n"
      "The episodes go into evaluation.csv and are no part of training: no step\n"
      "counts, nothing enters replay.\n"
      "[no evaluation]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "eval_episodes",
      "=INT",
      None,
      f"Episodes of each evaluation. [{EVAL_EPISODES}]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "video",
      "",
      False,
      "Records the last evaluation episode and the best as videos/step_*.gif, with\n"
      "the intrinsic reward below the pictures where the agent has one as it acts.\n"
      "Without --eval_every there is one evaluation, at the end of the run. For\n"
      "environments that have a picture; needs Pillow (explorax[plots]).",
    ),
  ),
  "How": (
    flag_table.Flag(
      "replay",
      f"={'|'.join(REPLAYS)}",
      None,
      "reverb: a Reverb server in the process (explorax[reverb], Python 3.11, Linux).\n"
      "memory: the same in plain numpy, on every machine; repeats to the bit. [reverb]",
      choices=REPLAYS,
    ),
    flag_table.Flag(
      "runner",
      f"={'|'.join(RUNNERS)}",
      "local",
      "local: acts and learns in turn, in one thread.\n"
      "device: acting, replay and learning in one compiled program, for environments\n"
      "written in JAX (jax:...); for Atari games (atari:...), stepped together in C++\n"
      "threads while the device learns. Needs no Reverb.\n"
      "distributed: replay, learner, actors and evaluator are processes of their own,\n"
      "on Ray (explorax[distributed]); --replay=memory goes without Reverb. One that\n"
      "dies is replaced. [local]",
      choices=RUNNERS,
    ),
    flag_table.Flag(
      "num_envs",
      "=INT",
      None,
      "Environments that --runner=device steps side by side, for each seed, and each\n"
      "actor of --runner=distributed, with one inference for all; the steps of all of\n"
      f"them count. [{ATARI_ENVS} Atari games of the device runner; 1 otherwise]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "num_actors",
      "=INT",
      None,
      "Processes that act in --runner=distributed, each in environments of its own\n"
      f"(--num_envs); the steps of all of them count. [{NUM_ACTORS}]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "replay_shards",
      "=INT",
      None,
      "Processes among which --runner=distributed divides replay; batches come from\n"
      "each in turn. [1]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "pull_every",
      "=STEPS",
      None,
      "Environment steps that an actor of --runner=distributed takes between two\n"
      "looks at the weights. [the agent's own number and at least 10, in each of its\n"
      "environments]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "rate_tolerance",
      "=STEPS",
      None,
      "By how many environment steps the actors of --runner=distributed may be ahead\n"
      "of the updates that these steps are due, or the learner of them; then they\n"
      "wait for each other. [what all actors take between two pulls, twice]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "learner_gpus",
      "=INT",
      None,
      "GPUs for the learner of --runner=distributed; all else computes on CPUs. [0]",
      parser=flag_table.WholeNumber(0),
    ),
    flag_table.Flag(
      "ray_address",
      "=ADDRESS",
      None,
      "Has --runner=distributed join a Ray cluster, on whose machines explorax must\n"
      "be installed: each process but the collector takes a CPU. [a Ray of its own,\n"
      "which listens on the loopback address]",
    ),
    flag_table.Flag(
      "environment_timeout",
      "=SECONDS",
      None,
      "How long --runner=distributed waits for an environment to answer; then its\n"
      f"process is ended and another has its place. [{ENVIRONMENT_TIMEOUT}]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "max_env_failures",
      "=INT",
      3,
      "How many times in a row an environment that raises an error in mid-episode is\n"
      "made anew; its episode then counts as truncated. (A bsuite environment keeps\n"
      "its score within itself and is never made anew.) --debug shows the errors. [3]",
      parser=flag_table.WholeNumber(0),
    ),
    flag_table.Flag(
      "output",
      "=DIR",
      None,
      "A directory for config.json, metrics.csv, TensorBoard events,\n"
      "checkpoints/, curve.png, summary.json and, on bsuite, bsuite's CSV;\n"
      "evaluation.csv, r_int.png and videos/ where there are evaluations.\n"
      "With --seeds the same for each seed in seedSEED/, and curve.png and\n"
      "summary.json of them all.\n"
      "[runs/AGENT-ENV-seedSEED in the current directory; with --seeds\n"
      "runs/AGENT-ENV-seedsFIRST-LAST]",
    ),
  ),
  "Checkpoints (the same command again goes on from the newest that is good)": (
    flag_table.Flag(
      "checkpoint_every",
      "=STEPS",
      None,
      "A checkpoint when a multiple of so many environment steps was passed\n"
      "(--runner=device: at the report). There is one at the run's end in any case.\n"
      "[by time alone]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "checkpoint_minutes",
      "=INT",
      10,
      "And one so long after the last, by a clock that nobody sets. [10]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "checkpoint_replay",
      "",
      None,
      "Whether checkpoints hold replay, which may be large (the first one says how\n"
      "large); without it learning pauses until replay is filled again.\n"
      "--checkpoint_replay=false leaves it out. [where resuming is exact with it:\n"
      "environments written in JAX, not with Reverb]",
    ),
    flag_table.Flag(
      "keep_checkpoints",
      "=INT",
      2,
      "How many of the newest are kept. [2]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "keep_checkpoint_hours",
      "=INT",
      None,
      "Beside these, one of each so many hours of the run is kept. [none]",
      parser=flag_table.WholeNumber(1),
    ),
    flag_table.Flag(
      "resume",
      "",
      True,
      "Goes on with the run that the directory holds, if its settings are the same.\n"
      "--resume=false refuses a directory that holds a run. [true]",
    ),
  ),
  "To look around": (
    flag_table.Flag("list_agents", "", False, "Shows the agents and exits."),
    flag_table.Flag("list_envs", "", False, "Shows the environments and exits."),
    flag_table.Flag("help", "", False, "Shows this and exits."),
    flag_table.Flag("debug", "", False, "Shows where in the code an error arose."),
  ),
}
