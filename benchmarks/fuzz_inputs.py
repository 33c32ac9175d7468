"""Fuzz cases: bad flags, settings, environments and files (see `fuzz`)."""

import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import fuzz
import numpy as np

from explorax.environments import testing
from explorax.experiments import compare, evaluate, export, presets, report
from explorax.experiments import overrides as overrides_lib
from explorax.experiments import run as run_lib
from explorax.experiments import sweep as sweep_lib
from explorax.papers import reproduce

MODULE = "fuzz_user"  # The name of a user's module; see `user_module`.
_RUN = (
  f"--agent=dqn --env={MODULE}:good --replay=memory --steps=20 --output=out "
  "--set hidden_sizes=4"
).split()

_FLAGS = """
--agent= | --agent=nope | --agent=DQN | --agent=../dqn | --agent=dqn@n_step=3
--steps=0 | --steps=-1 | --steps=1.5 | --steps=abc | --steps=nan | --steps=inf
--steps=1e400 | --steps=٣ | --steps= | --steps=0x10 | --steps=1,000 | --steps=1e-3
--episodes=0 | --episodes=-5 | --episodes=1/2 | --episodes=１０
--seed=-1 | --seed=4294967296 | --seed=1.5 | --seed=x | --seed=1e300
--runner=nope | --runner= | --runner=device | --replay=nope | --replay=none
--resume=maybe | --resume=2 | --undefok | --undefok= | --undefok=steps | --flagfile=x
--nosteps | --no-resume | --stepz=5 | --checkpoint_every=0 | --checkpoint_every=-3
--checkpoint_minutes=0 | --checkpoint_minutes=x | --keep_checkpoints=0
--keep_checkpoints=x | --checkpoint_replay=perhaps | --eval_every=0
--eval_every=-1 | --eval_episodes=3 | --eval_steps=3 | --seeds=0 | --seeds=10001
--seeds=-1 | --num_envs=4 | --num_actors=2 | --envs_per_actor=2 | --error_buffer=3
--max_env_failures=-1 | --environment_timeout=5 | --ray_address=localhost:1
--variable_update_period=5 | --video=maybe | --output=~nosuchuser/x
--output=/proc/nothing | --output=/dev/null/x | --set | --set=nothing
"""

# Invalid combinations of flags → a regular expression that the error must match.
_COMBINATIONS = {
  "--eval_every=5 --eval_episodes=3 --eval_steps=4": "eval_episodes",
  "--runner=device": "device",
  "--env=bsuite:catch/0 --max_env_failures=3": "max_env_failures",
  "--runner=distributed --num_actors=0": "num_actors",
  "--runner=distributed --envs_per_actor=0": "envs_per_actor",
  "--runner=distributed --ray_address=localhost:1": "ray_address",
  "a_word": "a_word",
}
_ON_DEVICE = {
  "--seeds=2 --eval_every=5": "seeds",
  "--seeds=4000000": "seeds",
  "--seeds=2 --seed=4294967295": "seed",
  "--num_envs=0": "num_envs",
  "--replay=memory": "replay",
}

_ENVIRONMENTS = """
--env= | --env=nope | --env=bsuite: | --env=:x | --env=bsuite:nope/0 | --env=gym:
--env=bsuite:deep_sea/99 | --env=bsuite:deep_sea/-1 | --env=bsuite:deep_sea
--env=gym:Nope-v0 | --env=gym:Pendulum-v1 | --env=gym:CartPole-v99 | --env=jax:nope
--env=jax:deep_sea/0 | --env=jax:deep_sea/-3 | --env=jax:deep_sea/1e99
--env=jax:deep_sea/x | --env=jax:deep_sea/5,permuted=maybe | --env=jax:deep_sea/5,x=1
--env=jax:mountain_car,time_limit=nan | --env=jax:mountain_car,time_limit=0
--env=jax:mountain_car, | --env=jax:chain/1e9 | --env=atari:Nope | --env=atari:Pong/nope
--env=atari:Pong/ngu,sticky=2 | --env=atari:Pong/dqn,sticky | --env=nomodule:make
--env=os:nothing | --env=os:path | --env=os:getcwd | --env=sys:exit | --env=.x:make
"""

# Functions of the user's module that do not return a valid environment → a regular
# expression that the error must match.
_MAKES = {
  "raises_key_error": "KeyError",
  "raises_with_lines": "first second",
  "raises_type_error": "TypeError",
  "raises_without_words": "raises_without_words.*AssertionError",
  "exits": "SystemExit",
  "out_of_memory": "MemoryError",
  "needs_size": "size",
  "nothing": "NoneType",
  "number": "function",
  "no_spec": "NotImplementedError",
  "continuous": "actions",
  "nested": "observations",
  "text": "observations",
  "bad_reset": "restart|FIRST",
}
# name → (the change of an environment's seventh step, a regular expression that the
# error must match)
_STEPS: dict[str, tuple[Callable[[dm_env.TimeStep], Any], str]] = {
  "shape": (lambda t: t._replace(observation=np.zeros(5)), "shape"),
  "scalar": (lambda t: t._replace(observation=1.0), "shape"),
  "none": (lambda t: t._replace(observation=None), "observation"),
  "words": (lambda t: t._replace(observation="words"), "observation"),
  "ragged": (lambda t: t._replace(observation=[[1, 2], [3]]), "observation"),
  "nan": (lambda t: t._replace(observation=np.full(3, np.nan)), "nan.*observation"),
  "inf": (lambda t: t._replace(observation=np.full(3, np.inf)), "inf.*observation"),
  "reward_none": (lambda t: t._replace(reward=None), "reward"),
  "reward_nan": (lambda t: t._replace(reward=np.nan), "nan.*reward"),
  "reward_large": (lambda t: t._replace(reward=1e39), "1e\\+39.*reward"),
  "reward_array": (lambda t: t._replace(reward=np.zeros(2)), "reward"),
  "reward_words": (lambda t: t._replace(reward="1"), "reward"),
  "reward_complex": (lambda t: t._replace(reward=1j), "reward"),
  "discount_none": (lambda t: t._replace(discount=None), "discount"),
  "discount_two": (lambda t: t._replace(discount=2.0), "discount of 2"),
  "discount_nan": (lambda t: t._replace(discount=np.nan), "discount"),
  "restart": (lambda t: dm_env.restart(t.observation), "began an episode"),
  "step_type": (lambda t: t._replace(step_type=7), "step_type|step type|StepType"),
  "tuple": (lambda t: (t.observation, 0.0, False, {}), "TimeStep"),
  "nothing": (lambda t: None, "TimeStep"),
  "raises": (lambda t: {}["key"], "KeyError: 'key'"),
  "exits": (lambda t: sys.exit(3), "SystemExit"),
  "memory": (lambda t: _raise(MemoryError()), "MemoryError"),
}

# agent → bad settings; the error must name the field.
_SETTINGS = {
  "dqn": """
  learning_rate=-1 | learning_rate=inf | learning_rate=nan | learning_rate=0
  n_step=0 | n_step=1000000 | n_step=1.5 | replay_capacity=1e10 | replay_capacity=0
  hidden_sizes=1000000000 | hidden_sizes=0 | hidden_sizes=-1 | hidden_sizes=a,b
  hidden_sizes=4,,4 | target_update_period=99999999999999 | target_update_period=0
  priority_exponent=1e308 | priority_exponent=-1 | adam_eps=inf | adam_eps=-1
  adam_b2=1 | adam_b2=-0.1 | updates_per_step=1e-320 | updates_per_step=0
  updates_per_step=inf | updates_per_step=-1 | batch_size=0 | batch_size=1e12
  discount=1.5 | discount=-1 | discount=nan | min_replay_size=0 | min_replay_size=1e9
  exploration.epsilon=1.5 | exploration.epsilon=-0.1 | exploration.epsilon=Linear(2,0,5)
  exploration.epsilon=Linear(1,0) | exploration.epsilon=Nope(1) | exploration=Nope
  exploration.ladder=inf | exploration=5 | exploration.of.ties=last | exploration.nope=1
  exploration=Boltzmann(0) | exploration=Boltzmann(temperature=-1) | torso=nope
  exploration=EzGreedy(0.1,of=Nope()) | exploration=__import__('os') | bonus=os:getcwd
  num_members=0 | num_explorers=-1 | mask_prob=2 | noisy_sigma=-1 | prior_scale=nan
  max_abs_reward=0 | max_abs_td=-1 | max_gradient_norm=0 | importance_exponent=2
  actor_update_period=0 | evaluation_epsilon=2 | random_steps=-1 | beta=-1 | beta=inf
  target=Nope() | target=5 | discount | =5 | .=5 | discount.x=1 | bonus=Rnd(1,2,3,4,5,6)
  """,
  "ngu": """
  num_policies=0 | min_discount=2 | burn_in=-1 | sequence_length=0 | lstm_size=-1
  sequence_period=0 | priority_eta=2 | reward_scale=-1 | transform_eps=-1
  cross_mixture_ratio=2 | bonus.num_neighbors=0 | bonus.memory_capacity=0
  bonus.kernel_epsilon=0 | bonus.max_modulation=0 | bonus.embedding_size=0
  target.lambda_=2 | target.epsilon=-1 | evaluation_policy=99 | optimizer=nope
  """,
  "rainbow": "target.num_atoms=1 | target.max_abs_value=0 | head_size=-1",
  "tdu": "exploration.period_steps=0 | num_explorers=-1 | prior_scale=-1",
}

# (command, arguments, regular expression that the error must match)
_COMMANDS: tuple[tuple[Any, str, str], ...] = (
  (sweep_lib.main, "", "agents|sweep"),
  (sweep_lib.main, "--agents=nope --sweep=catch/0", "nope"),
  (sweep_lib.main, "--agents=dqn --sweep=nope", "nope"),
  (sweep_lib.main, "--agents=dqn --sweep=catch/999", "catch/999"),
  (sweep_lib.main, "--agents=dqn@n_step=0 --sweep=catch/0", "n_step"),
  (sweep_lib.main, "--agents=dqn@nope=1 --sweep=catch/0", "nope"),
  (sweep_lib.main, "--agents=nomodule:make --sweep=catch/0", "nomodule"),
  (sweep_lib.main, "--agents=dqn --sweep=catch/0 --seeds=0", "seeds"),
  (sweep_lib.main, "--agents=dqn --sweep=catch/0 --workers=0", "workers"),
  (sweep_lib.main, "--agents=dqn --sweep=catch/0 --max_hours=0", "max_hours"),
  (sweep_lib.main, "--agents=dqn --sweep=catch/0 --score=nope", "score"),
  (
    sweep_lib.main,
    "--agents=dqn --sweep=catch/0 --workers=1 --sweep_config=nope.toml",
    "nope.toml",
  ),
  (sweep_lib.main, "--agents=dqn --sweep=catch/0 --output=/dev/null/x", "/dev/null"),
  (sweep_lib.main, "--agents=dqn --sweep=mnist/0 --workers=1 --mnist_dir=x", "mnist"),
  (evaluate.main, "", "file"),
  (evaluate.main, "nothing.npz", "nothing.npz"),
  (evaluate.main, "/dev/null", "/dev/null"),
  (evaluate.main, "a.npz b.npz", "2 files"),
  (evaluate.main, "/", "/"),
  (evaluate.main, "x.npz --episodes=0", "episodes"),
  (evaluate.main, "x.npz --seed=-1", "seed"),
  (export.main, "", "run's directory"),
  (export.main, "nothing --output=x.npz", "nothing"),
  (export.main, "/dev/null --output=x.npz", "/dev/null"),
  (export.main, "nothing", "--output"),
  (report.main, "", "directories"),
  (report.main, "nothing", "nothing"),
  (report.main, "a b", "2 directories"),
  (report.main, "/dev/null", "/dev/null"),
  (compare.main, "", "directory"),
  (compare.main, "nothing", "nothing"),
  (compare.main, "/dev/null", "/dev/null"),
  (reproduce.main, "", "figure"),
  (reproduce.main, "--figure=nope", "nope"),
  (reproduce.main, "--figure=ez/fig99", "ez/fig99"),
  (reproduce.main, "--figure=ez/fig3 --set nope=1", "nope"),
  (reproduce.main, "--figure=ez/fig3 --seeds=0", "seeds"),
  (reproduce.main, "--figure=os:getcwd", "os:getcwd"),
  (reproduce.main, "--figure=ez/fig3 --output=/dev/null/x", "/dev/null"),
)


def _raise(error: BaseException) -> None:
  raise error


class _Breaks(testing.FakeEnvironment):
  """A valid environment, except that its seventh step returns something else."""

  def __init__(self, change: Callable[[dm_env.TimeStep], Any]):
    super().__init__(episode_length=4)
    self._change, self._left = change, 7

  def step(self, action: Any) -> Any:
    timestep = super().step(action)
    self._left -= 1
    return timestep if self._left else self._change(timestep)


class _Specs(testing.FakeEnvironment):
  """A valid environment, except that some of its specs are replaced."""

  def __init__(self, **specs: Any):
    super().__init__()
    self._specs = specs

  def action_spec(self) -> Any:
    return self._specs.get("actions", super().action_spec())

  def observation_spec(self) -> Any:
    return self._specs.get("observations", super().observation_spec())


def user_module() -> types.ModuleType:
  """A stand-in for a user's own module, with the environments of the cases."""
  module = types.ModuleType(MODULE)
  array = dm_env.specs.Array

  class NoSpec(testing.FakeEnvironment):
    def action_spec(self) -> Any:
      raise NotImplementedError

  class BadReset(testing.FakeEnvironment):
    def reset(self) -> dm_env.TimeStep:
      return super().reset()._replace(step_type=dm_env.StepType.MID)

  functions: dict[str, Any] = {
    "good": testing.FakeEnvironment,
    "raises_key_error": lambda: _raise(KeyError("x")),
    "raises_with_lines": lambda: _raise(RuntimeError("first\nsecond")),
    "raises_type_error": lambda: _raise(TypeError("x")),
    "raises_without_words": lambda: _raise(AssertionError()),
    "exits": lambda: _raise(SystemExit(3)),
    "out_of_memory": lambda: _raise(MemoryError()),
    "needs_size": lambda size: None,
    "nothing": lambda: None,
    "number": 3,
    "no_spec": NoSpec,
    "continuous": lambda: _Specs(actions=array((2,), np.float32)),
    "nested": lambda: _Specs(observations={"a": array((2,), np.float32)}),
    "text": lambda: _Specs(observations=array((), np.dtype("U3"))),
    "bad_reset": BadReset,
  }
  functions.update(
    {f"breaks_{x}": functools.partial(_Breaks, f) for x, (f, _) in _STEPS.items()}
  )
  vars(module).update(functions)
  return module


def _split(text: str) -> list[str]:
  return [word.strip() for word in re.split(r"[|\n]", text) if word.strip()]


def _run(*argv: str) -> Callable[[], fuzz.Seen]:
  return functools.partial(fuzz.command, run_lib.main, [*_RUN, *argv])


def _named(flag: str) -> str:
  """`steps`, for `--steps=5`."""
  return re.escape(flag.lstrip("-").partition("=")[0])


def _of_fields() -> Iterator[fuzz.Case]:
  """Texts that are not numbers, for every numeric setting of some agents."""
  for agent in _SETTINGS:
    config = presets.PRESETS[agent].config_for("gym:CartPole-v1")
    for field in overrides_lib.settable_fields(config):
      value = functools.reduce(getattr, field.split("."), config)
      if isinstance(value, int | float) and not isinstance(value, bool):
        for text in ("nan", "1O"):
          argv = (f"--agent={agent}", "--set", f"{field}={text}")
          name = f"{agent} {field}={text}"
          yield fuzz.Case("--set, any field", name, _run(*argv), re.escape(field))


def _of_commands() -> Iterator[fuzz.Case]:
  for flag in _split(_FLAGS):
    yield fuzz.Case("flags", flag, _run(flag), _named(flag))
  for flags, names in _COMBINATIONS.items():
    yield fuzz.Case("flags", flags, _run(*flags.split()), names)
  for flags, names in _ON_DEVICE.items():
    argv = ["--agent=dqn", "--env=jax:deep_sea/4", "--runner=device", "--steps=9"]
    attempt = functools.partial(fuzz.command, run_lib.main, [*argv, *flags.split()])
    yield fuzz.Case("flags", f"on the device {flags}", attempt, names)
  for flag in _split(_ENVIRONMENTS):
    place = re.escape(re.split(r"[:=/,]", flag.partition("=")[2])[0]) or "env"
    yield fuzz.Case("environments", flag, _run(flag), place)
  for name, names in _MAKES.items():
    yield fuzz.Case("environments", name, _run(f"--env={MODULE}:{name}"), names)
  for name, (_, names) in _STEPS.items():
    flag = f"--env={MODULE}:breaks_{name}"
    yield fuzz.Case("environments, later", name, _run(flag), names)
  for agent, settings in _SETTINGS.items():
    for setting in _split(settings):
      argv = (f"--agent={agent}", "--set", setting)
      names = re.escape(setting.partition("=")[0].rpartition(".")[2]) or "field=value"
      yield fuzz.Case("--set", f"{agent} {setting}", _run(*argv), names)
  for main, argv, names in _COMMANDS:
    name = f"{main.__module__.rpartition('.')[2]} {argv}"
    attempt = functools.partial(fuzz.command, main, argv.split())
    yield fuzz.Case("other commands", name, attempt, names)


def cases() -> Iterator[fuzz.Case]:
  """All cases of this module; makes the user's module importable."""
  sys.modules[MODULE] = user_module()
  yield from _of_commands()
  yield from _of_fields()
