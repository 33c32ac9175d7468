"""The settings of a run, each spelled once: flags, help, checks and records derive.

A new setting is one field of `RunConfig`. The metadata of a field is a `Setting`: it
says how the flag is parsed, what `--help` prints, which runners read it and what it is
where nothing was given.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorax.experiments import errors, flag_table

LOCAL, DEVICE, DISTRIBUTED = RUNNERS = ("local", "device", "distributed")
REPLAYS = ("reverb", "memory")
MAX_SEEDS = 10_000  # At the same time.
_MAX_SEED = 2**32 - 1  # numpy's generators take no more.

_WHAT = "What to run"
_LENGTH = "How long (whichever limit is reached first)"
_EVALUATION = "Evaluation (episodes of the evaluation policy in a separate environment)"
_HOW = "How"
_DISTRIBUTED = "The distributed runner"
_CHECKPOINTS = "Checkpoints (the same command again resumes from the newest good one)"


@dataclasses.dataclass(frozen=True)
class Setting:
  """What is known of a field of `RunConfig`.

  Attributes:
    help: the text of `--help`, in lines of at most 80 characters.
    group: the heading in `--help`.
    value: the name of the value in `--help`; '' for a switch.
    parser: of numbers; None for text and switches.
    choices: the only values, if there are any.
    runners: which of them read the setting; others refuse it.
    default: (config) → the value where none was given (None).
    flag: its name, where it is not the field's.
    fixed: whether a run can be resumed only with the same value.
    recorded: whether `config.json` holds it.
  """

  help: str
  group: str
  value: str = ""
  parser: flag_table.WholeNumber | None = None
  choices: tuple[str, ...] = ()
  runners: tuple[str, ...] = RUNNERS
  default: Callable[["RunConfig"], Any] = lambda config: None
  flag: str = ""
  fixed: bool = False
  recorded: bool = True


def _field(default: Any, /, *args: Any, **settings: Any) -> Any:
  metadata = {"setting": Setting(*args, **settings)}
  return dataclasses.field(default=default, metadata=metadata)


def _number(least: int, most: int | None = None) -> flag_table.WholeNumber:
  return flag_table.WholeNumber(least, most)


def _for_distributed(value: Any) -> Callable[["RunConfig"], Any]:
  return lambda config: value if config.runner == DISTRIBUTED else None


def _num_envs(config: "RunConfig") -> int | None:
  if config.runner == LOCAL:
    return None
  return 8 if config.is_batched else 1


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """The settings of a run; the help of each field is its documentation.

  A field that was not given (None) takes its default for the runner and environment.

  Raises:
    ValueError: for a value out of its range, a setting that the runner does not read,
      and settings that exclude each other; the message is one sentence.
  """

  agent: str = _field("", "The agent (--list_agents).", _WHAT, "=NAME", fixed=True)
  settings: tuple[str, ...] = _field(
    (),
    "Changes a setting of the agent; may be repeated. A dot leads into a group:\n"
    "--set exploration.epsilon=0.1. Tuples: --set hidden_sizes=50,50.\n"
    "A name that does not exist lists those that do.",
    _WHAT,
    " FIELD=VALUE",
    flag="set",
  )
  env: str = _field(
    "",
    "The environment (--list_envs): bsuite:deep_sea/0, gym:CartPole-v1, or\n"
    "module:function for your own.",
    _WHAT,
    "=KIND:NAME",
    fixed=True,
  )
  seed: int = _field(
    0,
    "Of everything random in the agent and in the environment. [0]",
    _WHAT,
    "=INT",
    _number(0, _MAX_SEED),
    fixed=True,
  )
  runner: str = _field(
    LOCAL,
    "local: acts and learns in turn, in one thread.\n"
    "device: acting, replay and learning in one compiled program, for environments\n"
    "written in JAX (jax:...), and for Atari games (atari:...), which C++ threads\n"
    "step together while the device learns. Needs no Reverb.\n"
    "distributed: replay, learner, actors and evaluator are processes on Ray\n"
    "(explorax[distributed]); --replay=memory needs no Reverb. A process that dies\n"
    "is replaced. [local]",
    _HOW,
    f"={'|'.join(RUNNERS)}",
    choices=RUNNERS,
    fixed=True,
  )
  num_seeds: int = _field(
    1,
    "How many seeds to train at the same time, from --seed on, with\n"
    "--runner=device. Each leaves the files of a run in seedSEED/; curve.png and\n"
    "summary.json cover all of them. [1]",
    _WHAT,
    "=INT",
    _number(1, MAX_SEEDS),
    runners=(DEVICE,),
    flag="seeds",
    fixed=True,
  )
  episodes: int | None = _field(
    None,
    "Ends the run after so many episodes. [bsuite's own number on bsuite; elsewhere\n"
    "give this or --steps]",
    _LENGTH,
    "=INT",
    _number(1),
    fixed=True,
  )
  steps: int | None = _field(
    None,
    "Ends the run after so many environment steps, in mid-episode\n"
    "(--runner=device: at the report after them; --runner=distributed: with what the\n"
    "actors take in a tenth of a second).",
    _LENGTH,
    "=INT",
    _number(1),
    fixed=True,
  )
  eval_every: int | None = _field(
    None,
    "Evaluates after the episode (--runner=device: at the report) in which a\n"
    "multiple of so many environment steps is passed, and at the end of the run.\n"
    "The episodes are written to evaluation.csv and are no part of training: their\n"
    "steps are not counted, and nothing enters replay. [no evaluation]",
    _EVALUATION,
    "=STEPS",
    _number(1),
    fixed=True,
  )
  eval_episodes: int = _field(
    None,
    "Episodes of each evaluation. [5]",
    _EVALUATION,
    "=INT",
    _number(1),
    default=lambda config: 5,
    fixed=True,
  )
  eval_steps: int | None = _field(
    None,
    "Ends an evaluation with the episode in which so many of its own steps are\n"
    "reached, instead of after --eval_episodes. (Atari's customary 500,000 frames\n"
    "are 125,000 steps.)",
    _EVALUATION,
    "=STEPS",
    _number(1),
    fixed=True,
  )
  video: bool = _field(
    False,
    "Records the last evaluation episode and the best as videos/step_*.gif, with\n"
    "the intrinsic reward below the pictures if acting computes one. Without\n"
    "--eval_every there is one evaluation, at the end of the run. For environments\n"
    "that can be drawn; needs Pillow (explorax[plots]).",
    _EVALUATION,
    fixed=True,
  )
  replay: str = _field(
    None,
    "reverb: a Reverb server in the process (explorax[reverb], Python 3.11, Linux).\n"
    "memory: the same in plain numpy, on every machine; runs repeat to the bit.\n"
    "[reverb; the device runner has a replay of its own]",
    _HOW,
    f"={'|'.join(REPLAYS)}",
    choices=REPLAYS,
    runners=(LOCAL, DISTRIBUTED),
    default=lambda config: "device" if config.runner == DEVICE else "reverb",
    fixed=True,
  )
  num_envs: int | None = _field(
    None,
    "Environments that the device runner steps side by side for each seed, or each\n"
    "actor of the distributed runner, with one inference for all; the steps of all\n"
    "of them count. [8 Atari games with --runner=device; 1 otherwise]",
    _HOW,
    "=INT",
    _number(1),
    runners=(DEVICE, DISTRIBUTED),
    default=_num_envs,
    fixed=True,
  )
  max_env_failures: int = _field(
    None,
    "How many times in a row an environment that raises an error in mid-episode is\n"
    "recreated; its episode then counts as truncated. A bsuite environment holds its\n"
    "own score and is never recreated. --debug shows the errors. [3; bsuite: 0]",
    _HOW,
    "=INT",
    _number(0),
    default=lambda config: 0 if config.env.startswith("bsuite:") else 3,
  )
  output: str = _field(
    None,
    "A directory for config.json, metrics.csv, TensorBoard events, checkpoints/,\n"
    "curve.png, summary.json and, on bsuite, bsuite's CSV; evaluation.csv, r_int.png\n"
    "and videos/ where there are evaluations. With --seeds the same for each seed in\n"
    "seedSEED/, and curve.png and summary.json of all of them.\n"
    "[runs/AGENT-ENV-seedSEED in the current directory; with --seeds\n"
    "runs/AGENT-ENV-seedsFIRST-LAST]",
    _HOW,
    "=DIR",
    default=lambda config: default_output(
      config.agent, config.env, config.seed, config.num_seeds
    ),
    recorded=False,
  )
  num_actors: int | None = _field(
    None,
    "Processes that act, each in environments of its own (--num_envs); the steps of\n"
    "all of them count. [4]",
    _DISTRIBUTED,
    "=INT",
    _number(1),
    runners=(DISTRIBUTED,),
    default=_for_distributed(4),
  )
  replay_shards: int | None = _field(
    None,
    "Processes among which replay is divided; batches come from each in turn. [1]",
    _DISTRIBUTED,
    "=INT",
    _number(1),
    runners=(DISTRIBUTED,),
    default=_for_distributed(1),
  )
  variable_update_period: int | None = _field(
    None,
    "Environment steps that an actor takes at least between two fetches of weights,\n"
    "which a thread makes beside acting, at most ten times a second.\n"
    "[the agent's own number, in each of its environments]",
    _DISTRIBUTED,
    "=STEPS",
    _number(1),
    runners=(DISTRIBUTED,),
  )
  error_buffer: int | None = _field(
    None,
    "By how many environment steps the actors may be ahead of the learner's updates,\n"
    "or behind them; beyond that they wait for each other.\n"
    "[a tenth of the steps before the first update, and at least 16 for each actor]",
    _DISTRIBUTED,
    "=STEPS",
    _number(1),
    runners=(DISTRIBUTED,),
  )
  learner_gpus: int | None = _field(
    None,
    "GPUs for the learner; everything else computes on CPUs. [0]",
    _DISTRIBUTED,
    "=INT",
    _number(0),
    runners=(DISTRIBUTED,),
    default=_for_distributed(0),
    recorded=False,
  )
  ray_address: str | None = _field(
    None,
    "Joins a Ray cluster, on whose machines explorax must be installed; each\n"
    "process takes a CPU. [starts a Ray that listens on the loopback address]",
    _DISTRIBUTED,
    "=ADDRESS",
    runners=(DISTRIBUTED,),
    recorded=False,
  )
  environment_timeout: int | None = _field(
    None,
    "Seconds after which an environment that does not answer is given up; its\n"
    "process is replaced. [300]",
    _DISTRIBUTED,
    "=SECONDS",
    _number(1),
    runners=(DISTRIBUTED,),
    default=_for_distributed(300),
    recorded=False,
  )
  checkpoint_every: int | None = _field(
    None,
    "Writes a checkpoint when a multiple of so many environment steps was passed\n"
    "(--runner=device: at the report). The end of a run always writes one.\n"
    "[by time alone]",
    _CHECKPOINTS,
    "=STEPS",
    _number(1),
    recorded=False,
  )
  checkpoint_minutes: int = _field(
    10,
    "And so many minutes after the last one, by the monotonic clock. [10]",
    _CHECKPOINTS,
    "=INT",
    _number(1),
    recorded=False,
  )
  checkpoint_replay: bool | None = _field(
    None,
    "Whether checkpoints contain replay, which may be large (the first one reports\n"
    "its size); without it learning pauses until replay is filled again.\n"
    "--checkpoint_replay=false leaves it out. [true where resuming is then exact:\n"
    "environments written in JAX, not with Reverb]",
    _CHECKPOINTS,
    recorded=False,
  )
  keep_checkpoints: int = _field(
    2,
    "How many of the newest are kept. [2]",
    _CHECKPOINTS,
    "=INT",
    _number(1),
    recorded=False,
  )
  keep_checkpoint_hours: int | None = _field(
    None,
    "In addition, one of each so many hours of the run is kept. [none]",
    _CHECKPOINTS,
    "=INT",
    _number(1),
    recorded=False,
  )
  resume: bool = _field(
    True,
    "Resumes the run that the directory holds, if its settings are the same.\n"
    "--resume=false refuses a directory that holds a run. [true]",
    _CHECKPOINTS,
    recorded=False,
  )
  debug: bool = _field(
    False, "Shows where in the code an error arose.", "Information", recorded=False
  )

  def __post_init__(self):
    for name, setting in SETTINGS.items():
      value = getattr(self, name)
      if setting.parser is not None and value is not None:
        setting.parser.check(value, name)
      _check_choice(self, name, setting, value)
      if value is None:
        object.__setattr__(self, name, setting.default(self))
    if self.env.startswith("bsuite:") and self.max_env_failures:
      raise ValueError(
        f"--max_env_failures={self.max_env_failures}: a bsuite environment holds its "
        "own score and is never recreated; leave the flag out."
      )
    if self.num_seeds > 1:
      _check_seeds(self)

  @property
  def seeds(self) -> range:
    return range(self.seed, self.seed + self.num_seeds)

  @property
  def evaluates(self) -> bool:
    """Whether the run has evaluations at all."""
    return self.eval_every is not None or self.video

  @property
  def is_batched(self) -> bool:
    """Whether the host steps many environments together."""
    return self.runner == DEVICE and self.env.startswith("atari:")

  @property
  def title(self) -> str:
    """`tdu on bsuite:deep_sea/0, seed 0`."""
    seeds = f"seed {self.seed}"
    if self.num_seeds > 1:
      seeds = f"{self.num_seeds} seeds at once, {self.seed} to {self.seeds[-1]}"
    return f"{self.agent} on {self.env}, {seeds}"

  @property
  def length(self) -> str:
    """`100 episodes or 5,000 steps`."""
    limits = {"episodes": self.episodes, "steps": self.steps}
    return " or ".join(f"{n:,} {unit}" for unit, n in limits.items() if n is not None)

  def is_reached(self, env_steps: int, episodes: int) -> bool:
    """Whether one of the limits is."""
    return (self.steps is not None and env_steps >= self.steps) or (
      self.episodes is not None and episodes >= self.episodes
    )

  def record(self) -> dict[str, Any]:
    """What `config.json` holds of it."""
    record = {name: getattr(self, name) for name, s in SETTINGS.items() if s.recorded}
    if self.evaluates and self.eval_steps is None:
      return record
    return {**record, "eval_episodes": None}


# Field name → what is known of it.
SETTINGS = {f.name: f.metadata["setting"] for f in dataclasses.fields(RunConfig)}
_DEFAULTS = {f.name: f.default for f in dataclasses.fields(RunConfig)}
_INFORMATION = (
  flag_table.Flag("list_agents", "", False, "Shows the agents and exits."),
  flag_table.Flag("list_envs", "", False, "Shows the environments and exits."),
  flag_table.Flag("help", "", False, "Shows this text and exits."),
)


def flags() -> dict[str, list[flag_table.Flag]]:
  """Heading → its flags: those of the fields, and those that show something."""
  groups: dict[str, list[flag_table.Flag]] = {}
  for name, s in SETTINGS.items():
    default = _DEFAULTS[name]
    default = list(default) if isinstance(default, tuple) else default
    flag = flag_table.Flag(
      s.flag or name, s.value, default, s.help, s.choices, s.parser
    )
    groups.setdefault(s.group, []).append(flag)
  groups["Information"][:0] = _INFORMATION
  return groups


def parse(argv: Sequence[str]) -> RunConfig:
  """Reads a command line, its program's name left out; see `from_flags`."""
  return from_flags(flag_table.parse(flags(), argv))


def from_flags(given: Mapping[str, Any]) -> RunConfig:
  """The settings by the values of the flags.

  Raises:
    SetUpError: for a value that does not fit, a flag that nothing would read, or no
      agent or environment.
  """
  values = {name: given[s.flag or name] for name, s in SETTINGS.items()}
  values = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
  for name in ("agent", "env"):
    if not values[name]:
      raise errors.SetUpError(f"--{name} is missing; --list_{name}s shows the names.")
  try:
    config = RunConfig(**values)
  except ValueError as error:
    raise errors.SetUpError(str(error)) from error
  lengths = [n for n in ("eval_episodes", "eval_steps") if given[n] is not None]
  if lengths and not config.evaluates:
    raise errors.SetUpError(
      f"--{lengths[0]}={given[lengths[0]]} is given without an evaluation; add "
      "--eval_every=STEPS."
    )
  if len(lengths) == 2:
    raise errors.SetUpError(
      f"--eval_episodes={config.eval_episodes} and --eval_steps={config.eval_steps} "
      "both say how long an evaluation is; leave one of them out."
    )
  if config.runner == DEVICE and not config.env.startswith(("jax:", "atari:")):
    raise errors.SetUpError(
      "--runner=device takes environments written in JAX, as jax:deep_sea/20, and "
      f"Atari games, and {config.env!r} is neither; leave the flag out, or choose a "
      "jax: or atari: environment (--list_envs)."
    )
  return config


def default_output(agent: str, env: str, seed: int, num_seeds: int = 1) -> str:
  """`runs/tdu-bsuite_deep_sea_0-seed0`: where the files of a run go by default."""
  seeds = f"seed{seed}" if num_seeds == 1 else f"seeds{seed}-{seed + num_seeds - 1}"
  return f"runs/{agent}-{re.sub(r'[^A-Za-z0-9.-]+', '_', env)}-{seeds}"


def fixed(record: Mapping[str, Any]) -> dict[str, Any]:
  """Of a `config.json`, what must stay the same when the run is resumed."""
  names = [name for name, setting in SETTINGS.items() if setting.fixed]
  return {name: record.get(name) for name in ("config", *names)}


def _check_choice(config: RunConfig, name: str, setting: Setting, value: Any) -> None:
  """Refuses values that are no choice, and settings that the runner does not read."""
  if value in (_DEFAULTS[name], None, setting.default(config)):
    return
  flag = f"--{setting.flag or name}={value}"
  if setting.choices and value not in setting.choices:
    raise ValueError(f"{flag} is not one of {', '.join(setting.choices)}.")
  if config.runner not in setting.runners:
    readers = " and ".join(f"--runner={runner}" for runner in setting.runners)
    raise ValueError(
      f"{flag} is for {readers}, and --runner={config.runner} does not read it; leave "
      "the flag out, or change the runner."
    )


def _check_seeds(config: RunConfig) -> None:
  """Refuses many seeds where they cannot be trained at the same time."""
  flag = f"--seeds={config.num_seeds}"
  if config.env.startswith("atari:"):
    raise ValueError(
      f"{flag} is for environments written in JAX; for Atari games, run the command "
      "once for each --seed."
    )
  if config.evaluates:
    raise ValueError(
      f"{flag} cannot be combined with evaluations and videos, which are of one seed; "
      "leave out --eval_every and --video, or --seeds."
    )
  if config.seeds[-1] > _MAX_SEED:
    raise ValueError(
      f"--seed={config.seed} and {flag} go beyond the last seed, {_MAX_SEED}; use a "
      "smaller --seed."
    )


INTRODUCTION = """\
Runs an exploration agent in an environment and records the results.

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

OUTRO = """\
Ctrl-C ends a run cleanly, with a checkpoint: the same command again resumes it.
Exit codes: 0 finished, 1 failed on the way, 2 could not start, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP.
"""
