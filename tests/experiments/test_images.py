"""Runs on images with the channels first: as those with the channels last."""

import pathlib

import numpy as np
import pytest

from explorax.experiments import evaluate, run

ENVIRONMENTS = """
import dm_env
import jax
import jax.numpy as jnp
import numpy as np

import fakes


class ChannelsLast(fakes.FakeEnvironment):
  def __init__(self):
    super().__init__(observation_shape=(36, 36, 3))

  def _observation(self):
    image = np.arange(36 * 36 * 3).reshape(36, 36, 3) * (1 + self._time)
    return (image % 256).astype(np.uint8)

  def observation_spec(self):
    return dm_env.specs.Array((36, 36, 3), np.uint8)


class ChannelsFirst(ChannelsLast):
  def _observation(self):
    return super()._observation().transpose(2, 0, 1)

  def observation_spec(self):
    return dm_env.specs.Array((3, 36, 36), np.uint8)


class PureLast:
  num_actions = 2

  def reset(self, key):
    return self.observe(jnp.int32(0)), jnp.int32(0)

  def step(self, state, action):
    return self.observe(state + 1), state + 1, 1.0, state == 4

  def observe(self, time):
    image = jnp.arange(36 * 36 * 3).reshape(36, 36, 3) * (1 + time)
    return (image % 256).astype(jnp.uint8)


class PureFirst(PureLast):
  def observe(self, time):
    return super().observe(time).transpose(2, 0, 1)
"""

TINY = (
  *("--agent=double_dqn", "--steps=30", "--set=hidden_sizes=4", "--set=batch_size=2"),
  *("--set=min_replay_size=20", "--set=replay_capacity=100", "--replay=memory"),
)


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(str(tmp_path))
  pathlib.Path("turned_images.py").write_text(ENVIRONMENTS)


@pytest.mark.parametrize(
  ("kind", "flags"), [("Channels", ()), ("Pure", ("--runner=device",))]
)
def test_weights_are_those_of_channels_last(kind, flags):
  weights = {}
  for order in ("First", "Last"):
    env = f"--env=turned_images:{kind}{order}"
    argv = (*(x for x in TINY if not (flags and "replay=" in x)), env, *flags)
    assert run.main([*argv, f"--output={order}"]) == 0
    with np.load(f"{order}/checkpoints/final.npz") as file:
      weights[order] = {name: file[name] for name in file.files[:-1]}
  for name, value in weights["Last"].items():
    np.testing.assert_array_equal(weights["First"][name], value)


def test_a_trained_policy_takes_what_the_environment_gives(capsys):
  env = "--env=turned_images:ChannelsFirst"
  assert run.main([*TINY, env, "--output=out"]) == 0
  assert evaluate.main(["out/checkpoints/final.npz", env, "--episodes=1"]) == 0
  assert "return 5, 5 steps" in capsys.readouterr().out
