"""Training from Python against the command line, file by file and to the bit."""

import csv
import math
import pathlib

import gymnasium
import jax
import numpy as np
import pytest

import explorax
from explorax import exploration
from explorax.experiments import overrides, presets, run

pytestmark = pytest.mark.newest

ENV = "jax:chain/5"
SMALL = {
  "hidden_sizes": (8,),
  "replay_capacity": 200,
  "min_replay_size": 20,
  "batch_size": 4,
  "exploration": exploration.EpsilonGreedy(0.3),
}
_CLOCK = {"steps_per_second", "wall_seconds"}


@pytest.fixture(scope="module")
def agent() -> explorax.Agent:
  return explorax.make_agent("double_dqn", ENV, **SMALL)


def same(result: explorax.Result, other: explorax.Result) -> None:
  assert set(result.episodes) == set(other.episodes)
  for name in set(result.episodes) - _CLOCK:
    column, same = result.episodes[name], other.episodes[name]
    if column.dtype.kind == "f":  # metrics.csv has nine digits.
      np.testing.assert_allclose(column, same, rtol=1e-8, err_msg=name)
    else:
      np.testing.assert_array_equal(column, same, name)
  for name, column in other.evaluations.items():
    np.testing.assert_array_equal(result.evaluations[name], column, name)
  jax.tree.map(
    np.testing.assert_array_equal, result.weights_by_seed, other.weights_by_seed
  )


@pytest.mark.parametrize(
  "flags",
  [
    {"replay": "memory", "eval_every": 50, "eval_episodes": 2},
    {"runner": "device", "seeds": 2},
    {"seeds": 2, "workers": 1},
  ],
  ids=["local", "device", "seeds in turn"],
)
def test_same_numbers_as_the_command_line(agent, flags, tmp_path):
  out = tmp_path / "out"
  argv = [f"--{name}={value}" for name, value in flags.items()]
  argv += ["--agent=double_dqn", f"--env={ENV}", "--steps=120", "--seed=3"]
  argv += [f"--set={name}={overrides.spell(value)}" for name, value in SMALL.items()]
  assert run.main([*argv, f"--output={out}"]) == 0
  result = explorax.train(agent, ENV, steps=120, seed=3, **flags)
  seen: list[int] = []
  again = explorax.train(
    agent, ENV, steps=120, seed=3, output=out, on_episode=seen.append, **flags
  )
  assert not seen, "A finished run is read, and not repeated."
  same(result, again)
  assert not result.interrupted and set(result.episodes["seed"]) <= {3, 4}
  first = out if "seeds" not in flags else out / "seed3"
  rows = csv.DictReader((first / "metrics.csv").read_text().splitlines())
  returns = [float(row["episode_return"]) for row in rows]
  own = result.episodes["seed"] == 3
  assert result.episodes["episode_return"][own].tolist() == returns
  assert len(returns) > 10 and len(result.evaluations["env_steps"]) in (0, 6)


def test_leaves_what_a_run_leaves_and_resumes(agent, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  flags = {"steps": 100, "replay": "memory"}
  result = explorax.train(agent, ENV, **flags)
  assert not list(tmp_path.iterdir())

  def stop(episode):
    if episode.episode == 9:
      raise KeyError("no more")

  with pytest.raises(RuntimeError, match=r"environment step \d+, seed 0: KeyError"):
    explorax.train(agent, ENV, output="out", on_episode=stop, **flags)
  # Nothing has written a checkpoint, so that it starts again.
  resumed = explorax.train(agent, ENV, output="out", **flags)
  same(resumed, result)
  files = {path.name for path in pathlib.Path("out").iterdir()}
  assert {"config.json", "metrics.csv", "summary.json", "curve.png"} <= files
  assert "error.txt" not in files
  assert capsys.readouterr().out == ""


def test_an_object_is_trained_in_as_its_name_is(agent):
  name = "gym:FrozenLake-v1"
  lake = explorax.make_agent("double_dqn", name, **SMALL)
  flags = {"steps": 60, "seed": 2, "replay": "memory"}
  made = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
  same(explorax.train(lake, made, **flags), explorax.train(lake, name, **flags))


def test_evaluates_and_makes_a_data_frame(agent):
  pandas = pytest.importorskip("pandas")
  result = explorax.train(agent.core, ENV, episodes=30, replay="memory")
  frame = result.to_frame()
  assert isinstance(frame, pandas.DataFrame) and len(frame) == 30
  assert frame.loss.notna().any() and math.isnan(frame.loss[0])
  assert frame.env_steps.is_monotonic_increasing
  # The best of the chain's rewards is the last one, 1 at the first stop.
  returns = explorax.evaluate(agent, result.weights, ENV, episodes=3)
  assert returns.shape == (3,) and len(set(returns)) == 1


@pytest.mark.parametrize(
  ("call", "sentence"),
  [
    (lambda agent: explorax.make_agent("tbu", ENV), "there is no agent 'tbu'. Did you"),
    (lambda agent: explorax.make_agent("tdu", ENV, bata=1), "has no field 'bata'"),
    (
      lambda agent: explorax.train(agent, ENV, replay="memory"),
      "give --episodes or --steps",
    ),
    (lambda agent: explorax.train(agent, ENV, step=5), "train takes no 'step'."),
    (
      lambda agent: explorax.train(agent, "jax:chain/6", steps=5, replay="memory"),
      "the agent was made for",
    ),
    (
      lambda agent: explorax.train(
        agent, explorax.environments.make(ENV, seed=0), steps=5, runner="distributed"
      ),
      "makes environments in other processes",
    ),
    (
      lambda agent: explorax.train(
        agent, explorax.environments.make(ENV, seed=0), steps=5, eval_every=1
      ),
      "needs a second environment",
    ),
  ],
)
def test_refuses_in_a_sentence(agent, call, sentence):
  with pytest.raises(ValueError, match=sentence) as refused:
    call(agent)
  assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_settings_are_spelled_as_they_are_read(name):
  for env in (ENV, "atari:Pong"):
    config = presets.PRESETS[name].config_for(env)
    values = vars(config)
    spelled = [f"{name}={overrides.spell(value)}" for name, value in values.items()]
    assert overrides.apply(config, spelled) == config
