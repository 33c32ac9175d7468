"""Training from Python against the command line, file by file and to the bit."""

import csv
import json
import math
import pathlib

import fakes
import gymnasium
import jax
import numpy as np
import pytest

import explorax
from explorax import exploration
from explorax.experiments import presets, run
from explorax.experiments import settings as settings_lib

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
    np.testing.assert_allclose(result.evaluations[name], column, rtol=1e-8)
  assert len(result.evaluations["env_steps"]) > 0
  jax.tree.map(
    np.testing.assert_array_equal, result.weights_by_seed, other.weights_by_seed
  )


@pytest.mark.parametrize(
  "flags",
  [
    {"replay": "memory", "eval_every": 50, "eval_episodes": 2},
    {"runner": "device", "seeds": 2},
    {"seeds": 2, "workers": 1},
    {"seeds": 2, "workers": 1, "num_envs": 2},
  ],
  ids=["local", "device", "seeds in turn", "environments"],
)
def test_same_numbers_as_the_command_line(agent, flags, tmp_path):
  out = tmp_path / "out"
  argv = [f"--{name}={value}" for name, value in flags.items()]
  argv += ["--agent=double_dqn", f"--env={ENV}", "--steps=120", "--seed=3"]
  argv += [f"--set={name}={settings_lib.spell(value)}" for name, value in SMALL.items()]
  assert run.main([*argv, f"--output={out}"]) == 0
  result = explorax.train(agent, ENV, steps=120, seed=3, **flags)
  seen: list[int] = []
  again = explorax.train(
    agent, ENV, steps=120, seed=3, output=out, on_episode=seen.append, **flags
  )
  assert not seen, "A finished run is read, and not repeated."
  shown = repr(result)
  assert shown == repr(again) and len(shown) < 300
  assert f"double_dqn on {ENV}" in shown
  page = result._repr_html_()
  assert page.count("<tr>") == 1 + flags.get("seeds", 1) and "<img" in page
  assert f"{result.evaluation_return:.4g}" in shown
  same(result, again)
  assert not result.interrupted and set(result.episodes["seed"]) <= {3, 4}
  first = out if "seeds" not in flags else out / "seed3"
  rows = csv.DictReader((first / "metrics.csv").read_text().splitlines())
  returns = [float(row["episode_return"]) for row in rows]
  own = result.episodes["seed"] == 3
  assert result.episodes["episode_return"][own].tolist() == returns
  assert len(returns) > 10
  summary = json.loads((out / "summary.json").read_text())
  for name in ("evaluation_return", "training_return"):
    of_summary = summary[name]["value"] if "seeds" in flags else summary[name]
    assert getattr(result, name) == pytest.approx(of_summary)


def test_leaves_what_a_run_leaves_and_resumes(agent, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  flags = {"steps": 100, "replay": "memory"}
  result = explorax.train(agent, ENV, **flags)
  assert not list(tmp_path.iterdir())

  def fail(episode):
    if episode.episode == 9:
      raise KeyError("no more")

  for output in (None, "out"):
    with pytest.raises(KeyError, match="no more") as raised:
      explorax.train(agent, ENV, output=output, on_episode=fail, **flags)
    assert raised.value.__cause__ is None and raised.value.__context__ is None
  # Nothing has written a checkpoint, so that it starts again.
  resumed = explorax.train(agent, ENV, output="out", **flags)
  same(resumed, result)
  files = {path.name for path in pathlib.Path("out").iterdir()}
  assert {"config.json", "metrics.csv", "summary.json", "curve.png"} <= files
  assert "error.txt" not in files
  assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("runner", "steps"), [("local", 500), ("device", 20_000)])
def test_a_callback_sees_all_and_ends_the_run(agent, runner, steps, tmp_path):
  seen: dict[str, list[int]] = {"log": [], "episode": [], "checkpoint": []}

  def on_log(row):
    seen["log"].append(row.env_steps)
    assert row.metrics["epsilon"] == pytest.approx(0.3)
    if row.env_steps >= 100:
      raise explorax.StopTraining("enough")

  def train(**flags):
    return explorax.train(
      agent,
      ENV,
      steps=steps,
      runner=runner,
      log_every=50,
      eval_episodes=2,
      on_log=on_log,
      on_episode=lambda episode: seen["episode"].append(episode.episode),
      on_evaluation=lambda evaluation: seen.update(evaluation=evaluation),
      on_checkpoint=lambda path, env_steps: seen["checkpoint"].append(env_steps),
      **flags,
    )

  result = train(output=tmp_path / "out")
  assert not result.interrupted and result.weights
  (end,) = seen["checkpoint"]
  assert seen["log"][-1] == end < steps and seen["log"] == sorted(seen["log"])
  assert seen["log"] == result.learner["env_steps"].tolist()
  assert result.learner["loss"][-1] > 0
  assert seen["episode"] == result.episodes["episode"].tolist()
  assert seen["evaluation"].env_steps == end and len(seen["evaluation"].episodes) == 2
  summary = json.loads((tmp_path / "out/summary.json").read_text())
  assert (summary["status"], summary["stop_reason"]) == ("finished", "enough")
  same(train(), result)


def test_an_object_is_trained_in_as_its_name_is(agent):
  name = "gym:FrozenLake-v1"
  lake = explorax.make_agent("double_dqn", name, **SMALL)
  flags = {"steps": 60, "seed": 2, "replay": "memory"}
  made = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
  trained = explorax.train(lake, made, evaluation_env=name, **flags)
  same(trained, explorax.train(lake, name, **flags))
  # It is made again for the evaluation, by its spec.
  made = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
  same(explorax.train(lake, made, **flags), trained)
  nameless = gymnasium.wrappers.TransformReward(made.unwrapped, lambda reward: reward)
  nameless.unwrapped.spec = None
  normalising = gymnasium.wrappers.NormalizeReward(gymnasium.make("FrozenLake-v1"))
  for alone in (nameless, normalising):
    result = explorax.train(lake, alone, **flags)
    assert math.isnan(result.evaluation_return)
    assert not math.isnan(result.training_return)


def test_a_run_that_is_too_short_to_learn_warns(agent):
  with pytest.warns(RuntimeWarning, match="too short to learn: it makes 0 updates"):
    explorax.train(agent, ENV, steps=15, eval_episodes=0)


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
      lambda agent: explorax.train(agent, fakes.fake(), steps=5, eval_every=1),
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
    spelled = [f"{name}={settings_lib.spell(value)}" for name, value in values.items()]
    assert settings_lib.apply(config, spelled) == config
