"""The settings of a run: flags, checks and records derive from the fields."""

import dataclasses
import json

import pytest

from explorax.experiments import config, errors, flag_table

ON_DEVICE = ("--runner=device", "--env=jax:deep_sea/4")
ASKED = ("--agent=dqn", "--env=gym:CartPole-v1")


def test_every_field_is_a_flag_with_help():
  text = flag_table.help_text("", config.flags(), "")
  for name, setting in config.SETTINGS.items():
    assert f"  --{setting.flag or name}{setting.value}" in text
    assert setting.help.splitlines()[0] in text


def test_a_command_line_and_python_make_the_same():
  argv = [*ASKED, "--seed=3", "--steps=1e4", "--set=a=1", "--set=b=2"]
  asked = config.parse(argv)
  expected = config.RunConfig(
    agent="dqn",
    env="gym:CartPole-v1",
    seed=3,
    steps=10_000,
    settings=("a=1", "b=2"),
  )
  assert asked == expected and asked.seeds == range(3, 4)
  assert asked.output == "runs/dqn-gym_CartPole-v1-a=1-b=2-seed3"
  assert asked.length == "10,000 steps" and asked.title.endswith(", seed 3")


@pytest.mark.parametrize(
  ("settings", "expected"),
  [
    ({}, {"replay": "memory", "num_envs": None, "num_actors": None}),
    ({"runner": "device"}, {"replay": "device", "num_envs": 1}),
    ({"runner": "device", "env": "atari:Pong"}, {"num_envs": 8, "is_batched": True}),
    ({"runner": "distributed"}, {"replay": "memory", "num_envs": 1, "num_actors": 4}),
    ({"env": "bsuite:catch/0"}, {"eval_episodes": 5}),
  ],
)
def test_defaults_depend_on_runner_and_environment(settings, expected):
  made = config.RunConfig(**settings)
  assert {name: getattr(made, name) for name in expected} == expected
  assert dataclasses.replace(made, seed=1).num_envs == made.num_envs


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--num_actors=2"], "--num_actors=2 .*--runner=distributed"),
    (["--num_envs=2", "--env=bsuite:catch/0"], "--num_envs=2.* a single environment"),
    ([*ON_DEVICE, "--replay=memory"], "--replay=memory"),
    (["--eval_episodes=0", "--eval_every=9"], "--eval_episodes=0 .*--eval_every=9"),
    (["--eval_episodes=0", "--video"], "--eval_episodes=0 .*--video"),
    (["--eval_every=9", "--eval_steps=3", "--eval_episodes=3"], "--eval_steps=3"),
    (["--checkpoint_evry=3"], "Did you mean --checkpoint_every"),
    (["--seed=-1"], "seed.* -1"),
    (["--episodes=1.5"], "episodes.* '1.5'"),
    (["--runner=cloud"], "cloud.*local|device|distributed"),
    (["--runner=device"], "'gym:CartPole-v1'"),
    ([*ON_DEVICE, "--seeds=3", f"--seed={2**32 - 2}"], str(2**32 - 1)),
  ],
)
def test_impossible_flags_are_refused_in_one_sentence(flags, words):
  with pytest.raises(errors.SetUpError, match=words) as caught:
    config.parse([*ASKED, *flags])
  assert "\n" not in str(caught.value)


def test_the_record_and_the_settings_with_which_a_run_resumes():
  made = config.RunConfig(agent="dqn", runner="distributed", steps=5, num_actors=2)
  record = json.loads(json.dumps(made.record()))
  assert record["num_actors"] == 2 and record["eval_episodes"] == 5
  assert not {"output", "resume", "debug"} & set(record)
  by_steps = dataclasses.replace(made, eval_every=5, eval_steps=2).record()
  assert (by_steps["eval_episodes"], by_steps["eval_steps"]) == (None, 2)
  kept = config.fixed({**record, "config": {}, "versions": {}})
  assert "seed" in kept and "config" in kept
  assert not {"steps", "num_actors", "versions", "settings"} & set(kept)
