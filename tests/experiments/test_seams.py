"""A rule, a target and a bonus from a module outside the package, through `main`."""

import csv
import json
import pathlib
import textwrap

import numpy as np
import pytest

from explorax.experiments import run

PARTS = textwrap.dedent(
  '''
  import dataclasses

  import jax
  import jax.numpy as jnp

  from explorax import exploration
  from explorax.agents.bonuses import types as bonuses
  from explorax.agents.targets import types as targets
  from explorax.exploration import types as rules


  @dataclasses.dataclass(frozen=True)
  class LastAction:
    """Always the last action."""

    def init(self, key, num_members, num_actions, actor=rules.SINGLE_ACTOR):
      return jnp.int32(num_actions - 1)

    def begin_episode(self, key, state, env_steps):
      return state

    def select(self, key, q, state, env_steps):
      return state, jnp.float32(1), state

    def observe(self, reward, state):
      return state

    def policy(self, state):
      return jnp.int32(0)


  @dataclasses.dataclass(frozen=True)
  class MonteCarlo(targets.Target):
    """The rewards of the window, without a bootstrap."""

    is_multi_step = True
    scale: float = 1.0

    def td_errors(self, predictions, stream, tx_pair):
      def step(g, inputs):
        reward, discount, continues = inputs
        g = reward + discount * continues * g
        return g, g

      rows = (stream.r_t, stream.discount_t, stream.continues_t)
      g = jax.lax.scan(step, jnp.float32(0), rows, reverse=True)[1]
      q_a = jnp.take_along_axis(predictions.q_tm1, stream.a_tm1[:, None], axis=1)[:, 0]
      return jax.lax.stop_gradient(self.scale * g) - q_a


  @dataclasses.dataclass(frozen=True)
  class Arrival(bonuses.Bonus):
    """The size of the observation reached."""

    def build(self, observation_spec, num_actions):
      def compute(inputs):
        return jnp.abs(inputs.observation).sum(tuple(range(1, inputs.observation.ndim)))

      return bonuses.stateless("destination", compute)
  '''
)
COMMON = ["--steps=40", "--replay=memory", "--output=out", "--set=hidden_sizes=8"]
COMMON += ["--set=batch_size=4", "--set=replay_capacity=60", "--set=min_replay_size=20"]
DQN = ["--agent=dqn", "--set=n_step=3"]
R2D2 = ["--agent=r2d2", "--set=sequence_length=4", "--set=sequence_period=2"]
R2D2 += ["--set=lstm_size=0", "--set=head_size=0", "--set=duelling=false"]
R2D2 += ["--set=updates_per_step=1"]


@pytest.mark.parametrize("engine", [DQN, R2D2], ids=["dqn", "r2d2"])
def test_parts_from_outside_the_package(engine, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("outside_parts.py").write_text(PARTS)
  parts = [
    "exploration=outside_parts:LastAction",
    "target=outside_parts:MonteCarlo(scale=0.5)",
    "bonus=outside_parts:Arrival()",
    "beta=0.5",
  ]
  env = "--env=explorax.environments.testing:fake_truncated"
  flags = [env, *COMMON, *engine, *(f"--set={part}" for part in parts)]
  assert run.main(flags) == 0
  config = json.loads(pathlib.Path("out/config.json").read_text())["config"]
  assert config["target"] == {"class": "MonteCarlo", "scale": 0.5}
  with open("out/metrics.csv", newline="") as file:
    last = list(csv.DictReader(file))[-1]
  assert float(last["finite"]) == 1.0 and np.isfinite(float(last["loss"]))
  assert float(last["r_int"]) > 0
