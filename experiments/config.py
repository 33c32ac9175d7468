"""The settings of a run, each defined once: flags, help, checks and records derive.

A new setting is one field of `RunConfig`; its flag has the field's name.
"""

import dataclasses
import json
import math
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from explorax import ranges
from explorax.experiments import errors, flags

LOCAL, DEVICE, DISTRIBUTED = "local", "device", "distributed"
_Count = Annotated[int, ranges.Range(ge=1)]
_LATER: Any = None  # The default depends on other settings.

# Settings of a command, which config.json does not contain.
_OF_A_COMMAND = {
  *("output", "workers", "logger", "callback", "ray_address"),
  *("checkpoint_every", "checkpoint_minutes", "checkpoint_replay"),
}
# What may differ from the run that a command resumes. The agent's settings are compared
# as its config.
MAY_CHANGE_ON_RESUME = _OF_A_COMMAND | {
  *("settings", "episodes", "steps", "log_every", "num_actors"),
  *("eval_every", "eval_episodes", "eval_steps", "video"),
}
# What an agent of the user's own does not take.
_OF_OUR_AGENTS = (
  *("settings", "runner", "num_envs", "init_weights", "video"),
  *("eval_every", "eval_episodes", "eval_steps"),
)


@dataclasses.dataclass(frozen=True)
class RunConfig(ranges.Checked):
  """The settings of a run; the comments are the help of its flags.

  A field that was not given (None) takes its default for the runner and environment.

  Raises:
    ValueError: for a value out of range, a setting that the runner does not read, and
      settings that exclude each other; the message is one sentence.
  """

  ## What to run
  # The agent (--list_agents); or your own as module:function, which is called with
  # (observation_spec, action_spec, seed=...) and returns an object with bsuite's
  # select_action(timestep) and update(timestep, action, new_timestep).
  agent: str = ""
  # Changes a setting of the agent (--list_settings); may be repeated: --set
  # exploration.epsilon=0.1 --set hidden_sizes=50,50.
  settings: tuple[str, ...] = flags.named("set")
  # The environment (--list_envs): bsuite:deep_sea/0, gym:CartPole-v1, or
  # module:function for your own.
  env: str = ""
  # Seed of all random numbers of the agent and the environment. [0]
  seed: ranges.Seed = 0
  # Number of seeds, starting at --seed: in one program with --runner=device in an
  # environment written in JAX, without --eval_every; else as separate runs, --workers
  # at a time. Each has its own files in seedSEED/; curve.png and summary.json cover
  # all. [1]
  num_seeds: ranges.PositiveInt = flags.named("seeds", 1)
  # Starts learning from the weights of another run: its directory, or its final.npz.
  # Networks, observations and their preprocessing must be the same.
  init_weights: str | None = None

  ## How long (whichever limit is reached first)
  # Ends the run after this number of episodes. [bsuite's own number on bsuite;
  # elsewhere give --episodes or --steps]
  episodes: _Count | None = None
  # Ends the run after this number of environment steps, even within an episode
  # (--runner=device: at the next report).
  steps: _Count | None = None

  ## How
  # local: acts and learns in turn, in one thread. device: acts, stores and learns in
  # one compiled program, for environments written in JAX (jax:..., bsuite's Deep Sea)
  # and Atari games, which C++ threads step. distributed: processes on Ray
  # (explorax[distributed]) act, and this one stores and learns. [local]
  runner: Literal["local", "device", "distributed"] = "local"
  # memory: in numpy, on every platform; runs are reproducible bit for bit. reverb: a
  # Reverb server in the process (explorax[reverb], Python 3.11, Linux), which
  # compresses. [memory; the device runner has its own replay]
  replay: Literal["memory", "reverb", "device"] = _LATER
  # Number of environments per seed, or per actor with --runner=distributed, with one
  # inference for all. The steps of all count, and the run ends between two steps of
  # all. [8 Atari games with --runner=device; 1 otherwise]
  num_envs: _Count | None = None
  # Number of runs at a time, on Ray (explorax[distributed]). With 1, or without Ray,
  # this process computes one run after another. [one per core; one if the runs use a
  # GPU or processes of their own]
  workers: _Count | None = None
  # Logs the learner's metrics, ε, the learning rate and the speed whenever a multiple
  # of this number of environment steps is passed (--runner=device: at the report). [a
  # thousandth of --steps, between 100 and 10,000; without --steps 1,000]
  log_every: _Count = _LATER
  # Directory of the run's files (docs/guides/runs.md).
  # [runs/AGENT-ENV-CHANGES-seedSEED in the current directory, where CHANGES are the
  # settings that are not the default; with --seeds ...-seedsFIRST-LAST]
  output: str = _LATER
  # Also logs what TensorBoard gets: wandb (explorax[wandb]), or module:function for
  # your own, which is called with the content of config.json and the run's directory,
  # and returns a logger: logger(scalars, step), logger.close().
  logger: str | None = None
  # Your own code in the run, as module:name: a class, or a function without arguments.
  # Of the object that it makes, on_log(row), on_episode(episode),
  # on_evaluation(evaluation) and on_checkpoint(path, env_steps) are called, as far as
  # it has them; raise explorax.StopTraining(reason) ends the run as finished.
  callback: str | None = None

  ## Evaluation (episodes of the evaluation policy in a separate environment)
  # Evaluates after the episode (--runner=device: at the report) in which a multiple of
  # this number of environment steps is passed, beside at the end. These episodes do not
  # count and do not enter replay. [only at the end]
  eval_every: _Count | None = None
  # Number of episodes in each evaluation; 0: no evaluation. Without --eval_every, the
  # one at the end also ends with the episode in which its steps reach a tenth of the
  # run's (at least 5,000), and leaves an episode that has not ended by then. [5]
  eval_episodes: ranges.NonNegativeInt = _LATER
  # Ends an evaluation with the episode in which its steps reach this number, instead of
  # after --eval_episodes. (Atari's usual 500,000 frames are 125,000 steps.)
  eval_steps: _Count | None = None
  # Records the last evaluation episode as videos/step_*.gif; needs explorax[video],
  # and an environment that can be rendered.
  video: bool = False

  ## The distributed runner
  # Number of acting processes, each with its own environments (--num_envs). The steps
  # of all of them count. [4]
  num_actors: _Count | None = None
  # Address of a Ray cluster to join. explorax must be installed on its machines; each
  # actor takes a CPU. [starts Ray on this machine, on the loopback address]
  ray_address: str | None = None

  ## Checkpoints (the same command again resumes from the newest good one)
  # Writes a checkpoint when a multiple of this number of environment steps is passed
  # (--runner=device: at the report), beside the one at the end. [by time only]
  checkpoint_every: _Count | None = None
  # Also writes a checkpoint this many minutes after the last one. [10]
  checkpoint_minutes: _Count = 10
  # Whether checkpoints contain replay. Without it, learning pauses after resuming until
  # replay is filled again. [true if replay is in memory and at most 1 GiB]
  checkpoint_replay: bool | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    chosen = self.chosen()
    for name, value in self._defaults().items():
      if getattr(self, name) is None:
        object.__setattr__(self, name, value)
    if "output" not in chosen:
      object.__setattr__(self, "output", default_output(self))
    _check_combinations(self, chosen)

  def _defaults(self) -> dict[str, Any]:
    """The values of fields that were not given, for the runner and environment."""
    episodes = None if self.eval_steps is not None else 0 if self.has_user_agent else 5
    return {
      "log_every": min(max((self.steps or 1_000_000) // 1000, 100), 10_000),
      "eval_episodes": episodes,
      "replay": "device" if self.runner == DEVICE else "memory",
      "num_envs": None if self.runner == LOCAL else 8 if self.is_batched else 1,
      "num_actors": 4 if self.runner == DISTRIBUTED else None,
    }

  def chosen(self) -> dict[str, Any]:
    """The settings that differ from what a run without them would have."""
    defaults = {f.name: f.default for f in dataclasses.fields(self)} | self._defaults()
    values = vars(self).items()
    return {k: v for k, v in values if v is not None and v != defaults[k]}

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
    return self.eval_steps is not None or bool(self.eval_episodes)

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
    return [self] if self.num_seeds > 1 and self.is_one_program else self.of_seeds()

  def of_seeds(self) -> "list[RunConfig]":
    """The config of each seed, in its folder."""
    return [
      dataclasses.replace(
        self, seed=seed, num_seeds=1, output=f"{self.output}/seed{seed}"
      )
      for seed in self.seeds
    ]

  @property
  def title(self) -> str:
    """`tdu on bsuite:deep_sea/0, seed 0`."""
    seeds = f"seed {self.seed}"
    if self.num_seeds > 1:
      seeds = f"{self.num_seeds} seeds, {self.seed} to {self.seeds[-1]}"
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
    return {k: v for k, v in vars(self).items() if k not in _OF_A_COMMAND}


def from_flags(values: Mapping[str, Any]) -> RunConfig:
  """The settings from the values of flags; others than a run's are left out."""
  known = flags.by_name(RunConfig)
  given = {
    flag.field.name: values[name] for name, flag in known.items() if name in values
  }
  for name in ("agent", "env"):
    if not given.get(name):
      raise errors.SetUpError(f"--{name} is missing; --list_{name}s shows the names.")
  try:
    return RunConfig(**given)
  except ValueError as error:
    raise errors.SetUpError(str(error)) from error


def default_output(config: RunConfig) -> str:
  """`runs/tdu-bsuite_deep_sea_0-beta=0.5-seed0`: where the files of a run go.

  The name has every setting that another run in the same directory could not change.
  """
  in_name = {"agent", "env", "seed", "num_seeds"} | MAY_CHANGE_ON_RESUME
  changes = [
    f"{name}={value}" for name, value in config.chosen().items() if name not in in_name
  ]
  first, last = config.seeds[0], config.seeds[-1]
  seeds = f"seed{first}" if config.num_seeds == 1 else f"seeds{first}-{last}"
  name = "-".join([config.agent, config.env, *config.settings, *changes, seeds])
  return f"runs/{safe_name(name)}"


def safe_name(text: str) -> str:
  """The text with an underscore for what a file's name should not have."""
  return re.sub(r"[^\w.@=,-]+", "_", text)


def check_resumable(
  path: pathlib.Path, recorded: Mapping[str, Any], requested: Mapping[str, Any]
) -> bool:
  """Refuses to resume a run with settings that may not change, with both values.

  Returns whether the command asks for a later end than the run had.

  Args:
    path: the run's directory.
    recorded, requested: the config.json of the run, and of the command.
  """
  names = {f.name for f in dataclasses.fields(RunConfig)} - MAY_CHANGE_ON_RESUME
  if recorded.get("runner") == DEVICE and (recorded.get("num_seeds") or 1) > 1:
    names |= {"eval_every", "video"}  # They make separate runs of one program.
  changes = [
    f"{name} is {json.dumps(old)} there, but {json.dumps(new)} here"
    for top in ("config", *sorted(names))
    for name, old, new in _differences(top, recorded.get(top), requested.get(top))
  ]
  if "?" in requested["env"]:  # An argument that `identity.name_of` does not know.
    changes.append(f"env is {requested['env']}, and what a ? stands for is unknown")
  if changes:
    raise errors.OutputError(
      f"--output={path} already holds a run with other settings: "
      f"{'; '.join(changes[:5])}. Choose another --output, or these settings."
    )
  return any(
    (requested.get(limit) or math.inf) > (recorded.get(limit) or math.inf)
    for limit in ("episodes", "steps")
  )


def _differences(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
  """(dotted name, old value, new value) of what differs within two values of JSON."""
  if isinstance(old, dict) and isinstance(new, dict):
    for key in old | new:
      yield from _differences(f"{name}.{key}", old.get(key), new.get(key))
  elif json.dumps(old) != json.dumps(new):
    yield name, old, new


def _check_combinations(config: RunConfig, chosen: Mapping[str, Any]) -> None:
  """Refuses settings that nothing reads, or that exclude each other."""
  runner, env = f"--runner={config.runner}", config.env
  is_device, is_of_bsuite = config.runner == DEVICE, env.startswith("bsuite:")
  excluded = (
    (f"--agent={config.agent}, your own agent", _OF_OUR_AGENTS, config.has_user_agent),
    ("--eval_episodes=0", ("eval_every", "video"), not config.evaluates),
    ("--eval_steps", ("eval_episodes",), config.eval_steps is not None),
    (runner, ("num_actors", "ray_address"), config.runner != DISTRIBUTED),
    (runner, ("replay",), is_device != (config.replay == "device")),
    (
      f"--env={env}, whose score is that of a single environment",
      ("num_envs",),
      config.runner == LOCAL and is_of_bsuite and config.num_envs != 1,
    ),
  )
  for other, names, is_excluded in excluded:
    for name in names:
      if is_excluded and name in chosen:
        raise ValueError(f"--{name}={chosen[name]} cannot be combined with {other}.")
