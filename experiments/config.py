"""The settings of a run, each defined once: flags, help, checks and records derive.

A new setting is one field of `RunConfig`. The metadata of a field is a `Setting`: how
its flag is parsed, what `--help` prints, which runners read it, and its default.
"""

import dataclasses
import hashlib
import math
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from explorax import ranges
from explorax.experiments import compilation, errors, flag_table

LOCAL, DEVICE, DISTRIBUTED = RUNNERS = ("local", "device", "distributed")
REPLAYS = ("memory", "reverb")
_MAX_NAME = 150  # Characters of a directory that a run names, without its seeds.
MAX_SEEDS = 10_000  # The most seeds that one run can train.
_Count = Annotated[int, ranges.Range(ge=1)]

# Kinds of environments that are not written in JAX, and those of them with a copy.
_ON_HOST = ("bsuite:", "gym:")
_IN_JAX = ("bsuite:deep_sea/", "bsuite:deep_sea_stochastic/")

_WHAT = "What to run"
_LENGTH = "How long (whichever limit is reached first)"
_EVALUATION = "Evaluation (episodes of the evaluation policy in a separate environment)"
_HOW = "How"
_DISTRIBUTED = "The distributed runner"
_CHECKPOINTS = "Checkpoints (the same command again resumes from the newest good one)"


@dataclasses.dataclass(frozen=True)
class Setting:
  """The metadata of a field of `RunConfig`.

  Attributes:
    help: the text of `--help`, in lines of at most 80 characters.
    group: the heading in `--help`.
    value: the placeholder of the value in `--help`, `=INT` for a number by default;
      '' for a switch.
    choices: the allowed values; () for any.
    runners: the runners that read the setting; the others refuse it.
    default: (config) → the value of a field that was not given (None).
    flag: the flag's name; '' if it is the field's name.
    fixed: whether a run resumes only with the same value.
    recorded: whether `config.json` contains the setting.
  """

  help: str
  group: str
  value: str = ""
  choices: tuple[str, ...] = ()
  runners: tuple[str, ...] = RUNNERS
  default: Callable[["RunConfig"], Any] = lambda config: None
  flag: str = ""
  fixed: bool = False
  recorded: bool = True


def _field(default: Any, /, *args: Any, **settings: Any) -> Any:
  metadata = {"setting": Setting(*args, **settings)}
  return dataclasses.field(default=default, metadata=metadata)


def _for_distributed(value: Any) -> Callable[["RunConfig"], Any]:
  return lambda config: value if config.runner == DISTRIBUTED else None


_DEFAULT_REPLAYS = {LOCAL: "memory", DEVICE: "device", DISTRIBUTED: "memory"}


def _num_envs(config: "RunConfig") -> int | None:
  if config.runner == LOCAL:
    return None
  return 8 if config.is_batched else 1


def _log_every(config: "RunConfig") -> int:
  return 1000 if config.steps is None else min(max(config.steps // 1000, 100), 10_000)


@dataclasses.dataclass(frozen=True)
class RunConfig(ranges.Checked):
  """The settings of a run; each field is documented by its help.

  A field that was not given (None) takes its default for the runner and environment.

  Raises:
    ValueError: for a value out of range, a setting that the runner does not read, and
      settings that exclude each other; the message is one sentence.
  """

  agent: str = _field(
    "",
    "The agent (--list_agents); or your own as module:function. The function is\n"
    "called with (observation_spec, action_spec, seed=...) and returns an object with\n"
    "bsuite's select_action(timestep) and update(timestep, action, new_timestep).",
    _WHAT,
    "=NAME",
    fixed=True,
  )
  settings: tuple[str, ...] = _field(
    (),
    "Changes a setting of the agent; may be repeated. A dot selects a field of a\n"
    "group: --set exploration.epsilon=0.1. Tuples: --set hidden_sizes=50,50. An\n"
    "unknown name prints the known ones.",
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
  seed: ranges.Seed = _field(
    0,
    "Seed of all random numbers of the agent and the environment. [0]",
    _WHAT,
    fixed=True,
  )
  init_weights: str | None = _field(
    None,
    "Starts learning from the weights of another run: its directory, or its\n"
    "final.npz. Networks, observations and their preprocessing must be the same.",
    _WHAT,
    "=PATH",
    fixed=True,
  )
  runner: str = _field(
    LOCAL,
    "local: acts and learns in turn, in one thread.\n"
    "device: acts, stores and learns in one compiled program, for environments\n"
    "written in JAX (jax:..., and bsuite's Deep Sea in its copy in JAX) and for Atari\n"
    "games (atari:...), which C++ threads step while the device learns. Does not need\n"
    "Reverb.\n"
    "distributed: processes on Ray (explorax[distributed]) act, and this one stores\n"
    "and learns; an actor that dies is replaced. [local]",
    _HOW,
    f"={'|'.join(RUNNERS)}",
    choices=RUNNERS,
    fixed=True,
  )
  num_seeds: Annotated[int, ranges.Range(ge=1, le=MAX_SEEDS)] = _field(
    1,
    "Number of seeds to train, starting at --seed: in one program with\n"
    "--runner=device in an environment written in JAX, without --eval_every; else as\n"
    "separate runs, --workers at a time. Each seed has its own files in seedSEED/;\n"
    "curve.png and summary.json cover all seeds. [1]",
    _WHAT,
    flag="seeds",
    fixed=True,
  )
  episodes: _Count | None = _field(
    None,
    "Ends the run after this number of episodes. [bsuite's own number on bsuite;\n"
    "elsewhere give --episodes or --steps]",
    _LENGTH,
  )
  steps: _Count | None = _field(
    None,
    "Ends the run after this number of environment steps, even within an episode\n"
    "(--runner=device: at the next report).",
    _LENGTH,
  )
  log_every: _Count = _field(
    None,
    "Logs the learner's loss, mean Q and other metrics, ε, the learning rate and the\n"
    "speed whenever a multiple of this number of environment steps is passed\n"
    "(--runner=device: at the report), into learner.csv, TensorBoard and --logger.\n"
    "[a thousandth of --steps, between 100 and 10,000; without --steps 1,000]",
    _HOW,
    "=STEPS",
    default=_log_every,
  )
  eval_every: _Count | None = _field(
    None,
    "Runs an evaluation after the episode (--runner=device: at the report) in which\n"
    "a multiple of this number of environment steps is passed, beside the one at the\n"
    "end. The episodes are recorded in evaluation.csv. They are not part of training:\n"
    "their steps do not count and do not enter replay. [only at the end]",
    _EVALUATION,
    "=STEPS",
  )
  eval_episodes: ranges.NonNegativeInt = _field(
    None,
    "Number of episodes in each evaluation, with the greedy policy, unless the agent\n"
    "has another one for evaluation. 0: no evaluation, not even at the end. Without\n"
    "--eval_every and --eval_steps, the evaluation also ends with the episode in\n"
    "which its steps reach a tenth of the run's (at least 5,000), and leaves an\n"
    "episode that has not ended by then. [5]",
    _EVALUATION,
    default=lambda config: 0 if config.has_user_agent else 5,
  )
  eval_steps: _Count | None = _field(
    None,
    "Ends an evaluation with the episode in which its steps reach this number,\n"
    "instead of after --eval_episodes. (Atari's usual 500,000 frames are 125,000\n"
    "steps.)",
    _EVALUATION,
    "=STEPS",
  )
  video: bool = _field(
    False,
    "Records the last and the best evaluation episode as videos/step_*.gif, with\n"
    "the intrinsic reward below the pictures if the actor computes one. The\n"
    "environment must support rendering; needs explorax[video].",
    _EVALUATION,
  )
  replay: str = _field(
    None,
    "memory: in numpy, on every platform; runs are reproducible bit for bit.\n"
    "reverb: a Reverb server in the process (explorax[reverb], Python 3.11, Linux),\n"
    "which compresses; for replays that do not fit in memory.\n"
    "[memory; the device runner has its own replay]",
    _HOW,
    f"={'|'.join(REPLAYS)}",
    choices=REPLAYS,
    runners=(LOCAL, DISTRIBUTED),
    default=lambda config: _DEFAULT_REPLAYS[config.runner],
    fixed=True,
  )
  num_envs: _Count | None = _field(
    None,
    "Number of environments per seed, or per actor with --runner=distributed, with\n"
    "one inference for all of them. The steps of all environments count, and the run\n"
    "ends between two steps of all. [8 Atari games with --runner=device; 1 otherwise]",
    _HOW,
    default=_num_envs,
    fixed=True,
  )
  workers: _Count | None = _field(
    None,
    "Number of runs at a time, on Ray (explorax[distributed]). With 1, or without\n"
    "Ray, this process computes one run after another. [one per core; one if the runs\n"
    "use a GPU or processes of their own]",
    _HOW,
    runners=(LOCAL, DEVICE),
    recorded=False,
  )
  output: str = _field(
    None,
    "Directory of config.json, metrics.csv, learner.csv, TensorBoard events,\n"
    "checkpoints/, curve.png, summary.json and, on bsuite, bsuite's CSV;\n"
    "evaluation.csv, r_int.png and videos/ if the run is evaluated. With --seeds each\n"
    "seed has these files in seedSEED/, and curve.png and summary.json cover all\n"
    "seeds.\n"
    "[runs/AGENT-ENV-CHANGES-seedSEED in the current directory, where CHANGES are the\n"
    "settings of --set, the runner and others that are not the default; with --seeds\n"
    "runs/AGENT-ENV-CHANGES-seedsFIRST-LAST]",
    _HOW,
    "=DIR",
    default=lambda config: default_output(config),
    recorded=False,
  )
  logger: str | None = _field(
    None,
    "Also logs what TensorBoard gets: wandb (explorax[wandb]), or module:function for\n"
    "your own. The function is called with the content of config.json and the run's\n"
    "directory, and returns a logger: logger(scalars, step), logger.close().",
    _HOW,
    "=wandb|MODULE:FUNCTION",
    recorded=False,
  )
  callback: str | None = _field(
    None,
    "Your own code in the run: a class, or a function without arguments. Of the\n"
    "object that it makes, on_log(row), on_episode(episode),\n"
    "on_evaluation(evaluation) and on_checkpoint(path, env_steps) are called, as far\n"
    "as it has them. raise explorax.StopTraining(reason) in one of them ends the run\n"
    "as finished.",
    _HOW,
    "=MODULE:NAME",
    recorded=False,
  )
  num_actors: _Count | None = _field(
    None,
    "Number of acting processes, each with its own environments (--num_envs). The\n"
    "steps of all of them count. [4]",
    _DISTRIBUTED,
    runners=(DISTRIBUTED,),
    default=_for_distributed(4),
  )
  ray_address: str | None = _field(
    None,
    "Address of a Ray cluster to join. explorax must be installed on its machines;\n"
    "each actor takes a CPU. [starts Ray on this machine, on the loopback address]",
    _DISTRIBUTED,
    "=ADDRESS",
    runners=(DISTRIBUTED,),
    recorded=False,
  )
  checkpoint_every: _Count | None = _field(
    None,
    "Writes a checkpoint when a multiple of this number of environment steps is\n"
    "passed (--runner=device: at the report). A run always writes one at its end.\n"
    "[by time only]",
    _CHECKPOINTS,
    "=STEPS",
    recorded=False,
  )
  checkpoint_minutes: _Count = _field(
    10,
    "Also writes a checkpoint this many minutes after the last one. [10]",
    _CHECKPOINTS,
    recorded=False,
  )
  checkpoint_replay: bool | None = _field(
    None,
    "Whether checkpoints contain replay. Without it, learning pauses after resuming\n"
    "until replay is filled again. --checkpoint_replay=false turns it off. [true if\n"
    "replay is in memory and at most 1 GiB; false with Reverb]",
    _CHECKPOINTS,
    recorded=False,
  )
  debug: bool = _field(
    False, "Prints the traceback of an error.", "Information", recorded=False
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    for name, setting in SETTINGS.items():
      value = getattr(self, name)
      _check_choice(self, name, setting, value)
      if value is None:
        object.__setattr__(self, name, setting.default(self))
    is_bsuite = self.env.startswith("bsuite:")
    if is_bsuite and self.runner == LOCAL and (self.num_envs or 1) > 1:
      raise ValueError(
        f"--num_envs={self.num_envs}: a bsuite environment computes the score of a "
        "single environment; leave the flag out."
      )
    if self.has_user_agent:
      _check_user_agent(self)
    if not self.eval_episodes and (self.eval_every is not None or self.video):
      flag = "--video" if self.eval_every is None else f"--eval_every={self.eval_every}"
      raise ValueError(
        f"--eval_episodes=0 turns evaluations off, and {flag} asks for them; leave one "
        "of them out."
      )
    if self.seeds[-1] > ranges.MAX_SEED:
      raise ValueError(
        f"--seed={self.seed} and --seeds={self.num_seeds} exceed the largest seed, "
        f"{ranges.MAX_SEED}; use a smaller --seed."
      )
    if self.workers is not None and (self.num_seeds == 1 or self.is_one_program):
      raise ValueError(f"--workers={self.workers} has no effect on a single run.")

  @property
  def seeds(self) -> range:
    return range(self.seed, self.seed + self.num_seeds)

  @property
  def has_user_agent(self) -> bool:
    """Whether the agent is the user's own, `module:function`."""
    return ":" in self.agent

  @property
  def evaluates(self) -> bool:
    """Whether the run has an evaluation, at its end or more often."""
    return self.eval_episodes > 0

  @property
  def is_batched(self) -> bool:
    """Whether the host steps many environments as one batch."""
    return self.runner == DEVICE and self.env.startswith("atari:")

  @property
  def is_one_program(self) -> bool:
    """Whether one program on the device trains all seeds."""
    return (
      self.runner == DEVICE
      and not (self.is_batched or self.video)
      and self.eval_every is None
    )

  def runs(self) -> "list[RunConfig]":
    """The runs of all seeds, each in its folder; one if it trains all of them."""
    if self.num_seeds > 1 and self.is_one_program:
      return [self]
    return [
      dataclasses.replace(
        self, seed=seed, num_seeds=1, workers=None, output=f"{self.output}/seed{seed}"
      )
      for seed in self.seeds
    ]

  @property
  def title(self) -> str:
    """`tdu on bsuite:deep_sea/0, seed 0`."""
    seeds = f"seed {self.seed}"
    if self.num_seeds > 1:
      at_once = " at once" * self.is_one_program
      seeds = f"{self.num_seeds} seeds{at_once}, {self.seed} to {self.seeds[-1]}"
    return f"{self.agent} on {self.env}, {seeds}"

  @property
  def length(self) -> str:
    """`100 episodes or 5,000 steps`."""
    limits = {"episodes": self.episodes, "steps": self.steps}
    return " or ".join(f"{n:,} {unit}" for unit, n in limits.items() if n is not None)

  def is_reached(self, env_steps: int, episodes: int) -> bool:
    """Whether the run has reached one of its limits."""
    return (self.steps is not None and env_steps >= self.steps) or (
      self.episodes is not None and episodes >= self.episodes
    )

  def record(self) -> dict[str, Any]:
    """The part of `config.json` that the settings fill."""
    record = {name: getattr(self, name) for name, s in SETTINGS.items() if s.recorded}
    return record if self.eval_steps is None else {**record, "eval_episodes": None}


# Field name → its metadata.
SETTINGS = {f.name: f.metadata["setting"] for f in dataclasses.fields(RunConfig)}
_DEFAULTS = {f.name: f.default for f in dataclasses.fields(RunConfig)}
_INFORMATION = (
  flag_table.Flag("list_agents", "", False, "Prints the agents and exits."),
  flag_table.Flag("list_envs", "", False, "Prints the environments and exits."),
  flag_table.Flag("help", "", False, "Prints this text and exits."),
)


_CONFIG = flag_table.Flag(
  "config",
  "=FILE",
  None,
  "The settings of an earlier run, from its config.json; other flags change them.\n"
  "FILE imports nothing: modules of your own have to be on the command line, too.",
)


def flags() -> dict[str, list[flag_table.Flag]]:
  """Heading → its flags: one per field, the file's, and those that inform."""
  hints = typing.get_type_hints(RunConfig, include_extras=True)
  groups: dict[str, list[flag_table.Flag]] = {}
  for name, s in SETTINGS.items():
    default = _DEFAULTS[name]
    default = list(default) if isinstance(default, tuple) else default
    limits = ranges.conditions(hints[name])
    flag = flag_table.Flag(
      s.flag or name,
      s.value or "=INT" * bool(limits),
      default,
      s.help,
      s.choices,
      _whole_number(limits[0]) if limits else None,
    )
    groups.setdefault(s.group, []).append(flag)
  groups[_WHAT].append(_CONFIG)
  groups[_HOW].append(compilation.FLAG)
  groups["Information"][:0] = _INFORMATION
  return groups


def _whole_number(limits: ranges.Range) -> flag_table.WholeNumber:
  most = None if math.isinf(limits.le) else int(limits.le)
  return flag_table.WholeNumber(int(limits.ge), most)


def parse(argv: Sequence[str]) -> RunConfig:
  """Parses a command line without the program's name; see `from_flags`."""
  return from_flags(flag_table.parse(flags(), argv))


def from_flags(given: Mapping[str, Any]) -> RunConfig:
  """The settings from the values of the flags.

  Raises:
    SetUpError: for an invalid value, a flag that nothing reads, or a missing agent or
      environment.
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
  if None not in (given["eval_episodes"], given["eval_steps"]):
    raise errors.SetUpError(
      f"--eval_episodes={config.eval_episodes} and --eval_steps={config.eval_steps} "
      "both set the length of an evaluation; leave one of them out."
    )
  is_in_jax = config.env.startswith(_IN_JAX)
  if config.runner == DEVICE and config.env.startswith(_ON_HOST) and not is_in_jax:
    raise errors.SetUpError(
      "--runner=device runs environments written in JAX (jax:deep_sea/20), bsuite's "
      f"Deep Sea and Atari games, and {config.env!r} is none of them; leave the flag "
      "out, or choose another environment (--list_envs)."
    )
  return config


def default_output(config: RunConfig) -> str:
  """`runs/tdu-bsuite_deep_sea_0-beta=0.5-seed0`: where the files of a run go.

  The name has every setting that another run in the same directory could not change.
  """
  named = ("agent", "env", "seed", "num_seeds")
  changes = list(config.settings)
  for name, setting in SETTINGS.items():
    value = getattr(config, name)
    if setting.fixed and name not in named and value is not None:
      default = _DEFAULTS[name] if name == "runner" else setting.default(config)
      changes += [f"{name}={value}"] if value != default else []
  first, last = config.seeds[0], config.seeds[-1]
  seeds = f"seed{first}" if config.num_seeds == 1 else f"seeds{first}-{last}"
  name = "-".join([config.agent, config.env, *changes])
  if len(name) > _MAX_NAME:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    name = f"{name[:_MAX_NAME]}-{digest}"
  return f"runs/{safe_name(name)}-{seeds}"


def safe_name(text: str) -> str:
  """The text with an underscore for what a file's name should not have."""
  return re.sub(r"[^\w.@=,-]+", "_", text)


def is_record(content: Any) -> bool:
  """Whether a `config.json` has what is read of it, each of its type."""
  if not isinstance(content, dict):
    return False
  content = {"versions": {}, "resumed": [], **content}
  kinds = {
    "agent": str,
    "env": str,
    "settings": list,
    "versions": dict,
    "resumed": list,
  }
  return (
    all(isinstance(content.get(name), kind) for name, kind in kinds.items())
    and all(isinstance(setting, str) for setting in content["settings"])
    and isinstance(content["versions"].get("packages", {}), dict)
  )


def fixed(record: Mapping[str, Any]) -> dict[str, Any]:
  """The part of a `config.json` that must stay the same for the run to resume."""
  names = [name for name, setting in SETTINGS.items() if setting.fixed]
  fixed = {name: record.get(name) for name in ("config", *names)}
  if record.get("runner") == DEVICE and (record.get("num_seeds") or 1) > 1:
    # Evaluations make separate runs of what is one program, with other directories.
    fixed["evaluations"] = bool(record.get("eval_every") or record.get("video"))
  return fixed


def given(config: RunConfig) -> dict[str, Any]:
  """The settings that differ from what a run without them would have."""
  values = {name: getattr(config, name) for name, s in SETTINGS.items() if s.recorded}
  return {
    name: value
    for name, value in values.items()
    if value not in (None, _DEFAULTS[name], SETTINGS[name].default(config))
  }


def free(record: Mapping[str, Any]) -> dict[str, Any]:
  """The other settings in a `config.json`, which a resumed run may change."""
  names = [n for n, s in SETTINGS.items() if s.recorded and not s.fixed]
  return {name: record.get(name) for name in names if name != "settings"}


def _check_choice(config: RunConfig, name: str, setting: Setting, value: Any) -> None:
  """Refuses unknown choices, and settings that the runner does not read."""
  if value in (_DEFAULTS[name], None, setting.default(config)):
    return
  flag = f"--{setting.flag or name}={value}"
  if setting.choices and value not in setting.choices:
    raise ValueError(f"{flag} is not one of {', '.join(setting.choices)}.")
  if config.runner not in setting.runners:
    readers = " and ".join(f"--runner={runner}" for runner in setting.runners)
    raise ValueError(
      f"{flag} is for {readers}; --runner={config.runner} does not read it. Leave the "
      "flag out, or change the runner."
    )


def _check_user_agent(config: RunConfig) -> None:
  """Refuses what the loop for users' agents does not have."""
  flag = f"--set {config.settings[0]}" if config.settings else ""
  flag = flag or ("" if config.runner == LOCAL else f"--runner={config.runner}")
  flag = flag or (f"--num_envs={config.num_envs}" if config.num_envs else "")
  evaluates = config.evaluates or config.video or config.eval_every or config.eval_steps
  flag = flag or ("--eval_every, --eval_episodes and --video" if evaluates else "")
  flag = flag or ("--init_weights" if config.init_weights else "")
  if flag:
    raise ValueError(
      f"{flag} cannot be combined with --agent={config.agent}, an agent of your own; "
      "leave it out."
    )
