"""The settings of a run: flags, checks and records derive from the fields."""

import dataclasses
import json
import pathlib

import pytest

from explorax.experiments import config, errors, flags, run

ON_DEVICE = ("--runner=device", "--env=jax:deep_sea/4")
ASKED = ("--agent=dqn", "--env=gym:CartPole-v1")


def _parse(argv):
  return config.from_flags(flags.parse(argv, config.RunConfig))


def test_every_flag_has_help():
  lines = flags.help_text(config.RunConfig, run.Flags).splitlines()
  assert lines[0] == "What to run" and "How" in lines
  for name in flags.by_name(config.RunConfig, run.Flags):
    place = [line.partition("=")[0] for line in lines].index(f"  --{name}")
    assert lines[place + 1].startswith("      ")


def test_a_command_line_and_python_make_the_same():
  argv = [*ASKED, "--seed=3", "--steps=1e4", "--set=a=1", "--set=b=2"]
  asked = _parse(argv)
  expected = config.RunConfig(
    agent="dqn", env="gym:CartPole-v1", seed=3, steps=1e4, settings=["a=1", "b=2"]
  )
  assert asked == expected and asked.seeds == range(3, 4)
  assert asked.steps == 10_000 and isinstance(asked.steps, int)
  assert asked.output == "runs/dqn-gym_CartPole-v1-a=1-b=2-seed3"
  assert asked.length == "10,000 steps" and asked.title.endswith(", seed 3")


@pytest.mark.parametrize(
  ("settings", "expected"),
  [
    ({}, {"replay": "memory", "num_envs": None, "num_actors": None}),
    ({"runner": "device"}, {"replay": "device", "num_envs": 1, "log_every": 1000}),
    ({"runner": "device", "env": "atari:Pong"}, {"num_envs": 8, "is_batched": True}),
    ({"runner": "distributed"}, {"replay": "memory", "num_envs": 1, "num_actors": 4}),
    ({"env": "bsuite:catch/0", "steps": 1}, {"eval_episodes": 5, "log_every": 100}),
  ],
)
def test_defaults_depend_on_runner_and_environment(settings, expected):
  made = config.RunConfig(**settings)
  assert {name: getattr(made, name) for name in expected} == expected
  assert dataclasses.replace(made, seed=1).num_envs == made.num_envs
  assert set(made.chosen()) - {"output"} == set(settings)


@pytest.mark.parametrize(
  ("argv", "words"),
  [
    (["--num_actors=2"], "--num_actors=2 .*--runner=local"),
    (["--num_envs=2", "--env=bsuite:catch/0"], "--num_envs=2.* single environment"),
    ([*ON_DEVICE, "--replay=memory"], "--replay=memory"),
    (["--replay=device"], "--replay=device"),
    (["--eval_episodes=0", "--eval_every=9"], "--eval_every=9"),
    (["--eval_every=9", "--eval_steps=3", "--eval_episodes=3"], "--eval_steps"),
    (["--agent=m:f", "--set=beta=1"], "--settings=.*your own agent"),
  ],
)
def test_impossible_flags_are_refused(argv, words):
  with pytest.raises(errors.SetUpError, match=words):
    _parse([*ASKED, *argv])


MADE = config.RunConfig(agent="dqn", runner="distributed", steps=5, num_actors=2)


def test_the_record_is_the_settings():
  record = json.loads(json.dumps(MADE.record()))
  assert record["num_actors"] == 2 and record["eval_episodes"] == 5
  assert not {"output", "logger"} & set(record)
  by_steps = config.RunConfig(steps=5, eval_every=5, eval_steps=2)
  for made in (MADE, by_steps):
    assert config.RunConfig(**json.loads(json.dumps(made.record()))) == made
  assert by_steps.record()["eval_episodes"] is None


def test_a_run_resumes_with_what_may_change_and_refuses_the_rest():
  recorded = json.loads(json.dumps({"config": {"beta": 1.0}, **MADE.record()}))

  def check(**changes):
    config.check_resumable(pathlib.Path("out"), recorded, {**recorded, **changes})

  check(steps=6, num_actors=9, video=True, settings=["beta=1"])
  for name, value, old in (("seed", 7, "0"), ("replay", "reverb", "memory")):
    with pytest.raises(errors.OutputError, match=f'{name} is "?{old}"? there.*{value}'):
      check(**{name: value})
  with pytest.raises(errors.OutputError, match=r"config\.beta is 1\.0 there, but 2"):
    check(config={"beta": 2})
