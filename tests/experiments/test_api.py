"""Training from Python: against the command line, and with all kinds of objects."""

import dataclasses
import json
import math
import pickle
import random

import dm_env
import fakes
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorax
from explorax import environments, exploration
from explorax.environments import identity, jax_types

ENV = "gym:Corridor-v0"  # Registered below.
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
  """Of all environments here, whose specs are equal: all runs share its programs."""
  return explorax.make_agent("dqn", ENV, **SMALL)


def same(result: explorax.Result, other: explorax.Result) -> None:
  for name in ("episodes", "evaluations", "learner"):
    columns, others = getattr(result, name), getattr(other, name)
    assert set(columns) == set(others)
    for column in set(columns) - _CLOCK:
      np.testing.assert_array_equal(columns[column], others[column], column)
  jax.tree.map(np.testing.assert_array_equal, result.weights, other.weights)


class Corridor(gymnasium.Env):
  """A corridor whose end is on the right; it has no gymnasium spec."""

  observation_space = gymnasium.spaces.Box(-1, 1, (2,))
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, size: int = 3):
    self.size = size

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.place = self.time = 0
    return self._seen(), {}

  def step(self, action):
    self.time += 1
    self.place = max(0, self.place + 2 * int(action) - 1)
    done = self.place == self.size
    return self._seen(), float(done), done, self.time == 8, {}

  def _seen(self):
    noise = np.random.normal() + random.random()  # The global generators.
    return np.array([self.place / self.size, 0.1 * np.tanh(noise)], np.float32)


@dataclasses.dataclass(frozen=True)
class Pure(jax_types.Simulation):
  """The corridor in JAX; its parameter is the reward at the end."""

  size: int = 3
  num_actions = 2

  def default_params(self):
    return 1.0

  def observation_spec(self):
    return dm_env.specs.Array((2,), np.float32)

  def begin(self, key, params):
    return jnp.int32(0), jnp.int32(0)

  def advance(self, key, state, action, params):
    place, steps = jnp.maximum(0, state[0] + 2 * action - 1), state[1] + 1
    at_end = place == self.size
    return (place, steps), jnp.where(at_end, params, 0.0), at_end | (steps == 20)

  def observe(self, state):
    return jnp.full(2, state[0] / self.size)


gymnasium.register("Corridor-v0", Corridor)


def registered() -> gymnasium.Env:
  env = gymnasium.make(ENV.removeprefix("gym:"), disable_env_checker=True)
  return gymnasium.wrappers.TransformReward(env, abs)


# Of a registered environment, and of one in JAX, another is made for evaluations.
OBJECTS = {
  "gymnasium": Corridor,
  "registered": registered,
  "dm_env": lambda: fakes.FakeEnvironment(episode_length=4, observation_shape=(2,)),
  "jax": Pure,
}


@pytest.mark.parametrize(
  ("kind", "runner", "eval_episodes"),
  [*((kind, "local", 2) for kind in OBJECTS), ("jax", "device", 0)],
)
def test_objects_of_every_protocol(kind, runner, eval_episodes, agent, tmp_path):
  make = OBJECTS[kind]
  assert explorax.make_agent("dqn", make(), **SMALL).core is agent.core
  flags = {"steps": 60, "eval_episodes": eval_episodes, "runner": runner}
  asked = {**flags, "seeds": 2, "output": tmp_path / "run"}
  results = explorax.train(agent, make(), **asked)
  assert [result.seed for result in results] == [0, 1]
  is_evaluated = kind in ("registered", "jax") and eval_episodes > 0
  for result in results:
    assert not result.interrupted and len(result.episodes["episode"])
    assert len(result.learner["env_steps"]) == len(result.learner["seed"])
    assert math.isfinite(result.evaluation_return) == is_evaluated
  # The same call again reads the results, also with another object of the same kind.
  if kind == "dm_env":
    with pytest.raises(Exception, match=r"observation_shape=\?.* is unknown"):
      explorax.train(agent, make(), **asked)
  else:
    again = explorax.train(agent, make(), **asked)
    for result, other in zip(results, again, strict=True):
      same(result, other)
  if kind == "gymnasium":  # Without a directory, and alone, the numbers are the same.
    same(explorax.train(agent, make(), seed=1, **flags), results[1])
  assert explorax.evaluate(results[0], make(), episodes=1, seed=3).shape == (1,)


def test_a_reward_on_the_device_that_is_not_a_number_is_the_environments(agent):
  with pytest.raises(FloatingPointError, match="the environment returned a reward"):
    explorax.train(agent, (Pure(), math.nan), steps=60, seeds=2, eval_episodes=0)


def test_other_objects_do_not_share_a_directory(agent, tmp_path):
  flags = {"steps": 9, "eval_episodes": 0, "output": tmp_path / "run"}
  explorax.train(agent, Corridor(3), **flags)  # Without an update.
  wrapped = gymnasium.wrappers.TimeLimit(Corridor(3), 5)
  for other in (Corridor(4), wrapped, Pure(3), fakes.FakeEnvironment()):
    with pytest.raises(Exception, match="env is"):
      explorax.train(agent, other, runner="local", **flags)
  record = json.loads((tmp_path / "run/config.json").read_text())
  assert record["env"] == f"{__name__}:Corridor/size=3"


def test_an_object_is_called_by_its_class_and_arguments():
  lake = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=20)
  for env, name in (
    (
      gymnasium.wrappers.TransformReward(lake, abs),
      "gym:FrozenLake-v1/is_slippery=false,max_episode_steps=20"
      "|TransformReward/func=abs",
    ),
    (
      gymnasium.wrappers.TransformReward(Corridor(), lambda reward: reward),
      f"{__name__}:Corridor/size=3|TransformReward/func=?",
    ),
  ):
    assert identity.name_of(env) == name


def test_same_numbers_as_the_command_line(trained_run, short_settings):
  out = trained_run("retrace_dqn")
  env, flags = "fakes:fake_one_hot", {"steps": 100, "eval_episodes": 1}
  settings = short_settings("retrace_dqn")
  agent = explorax.make_agent("retrace_dqn", env, settings=settings)
  result, seen = explorax.train(agent, env, **flags), []
  again = explorax.train(agent, env, output=out, on_episode=seen.append, **flags)
  assert not seen, "A finished run is read, and not repeated."
  same(result, again)
  assert repr(result) == repr(again)
  summary = json.loads((out / "summary.json").read_text())
  for name in ("evaluation_return", "training_return"):
    assert getattr(result, name) == summary[name]


def test_an_error_reaches_the_caller_as_it_was_raised(agent, tmp_path, capsys):
  def fail(episode):
    if episode.episode == 9:
      raise KeyError("no more")

  flags = {"steps": 100, "output": tmp_path / "out"}
  with pytest.raises(KeyError, match="no more") as raised:
    explorax.train(agent, ENV, on_episode=fail, **flags)
  assert raised.value.__cause__ is None and raised.value.__context__ is None
  assert any("error.txt" in note for note in raised.value.__notes__)
  assert "no more" in (tmp_path / "out/error.txt").read_text()
  # Nothing has written a checkpoint, so that it starts again.
  assert explorax.train(agent, ENV, **flags).episodes["episode"][0] == 1
  assert not (tmp_path / "out/error.txt").exists()
  assert capsys.readouterr().out == ""


def test_a_callback_sees_all_and_ends_the_run(agent, tmp_path):
  seen: dict[str, list[int]] = {"log": [], "episode": [], "checkpoint": []}

  def on_log(row):
    seen["log"].append(row.env_steps)
    assert row.metrics["epsilon"] == pytest.approx(0.3)
    if row.env_steps >= 100:
      raise explorax.StopTraining("enough")

  result = explorax.train(
    agent,
    ENV,
    steps=500,
    log_every=50,
    eval_episodes=2,
    on_log=on_log,
    on_episode=lambda episode: seen["episode"].append(episode.episode),
    on_evaluation=lambda evaluation: seen.update(evaluation=evaluation),
    on_checkpoint=lambda path, env_steps: seen["checkpoint"].append(env_steps),
    output=tmp_path / "out",
  )
  assert not result.interrupted and result.weights
  (end,) = seen["checkpoint"]
  assert seen["log"][-1] == end < 500 and seen["log"] == sorted(seen["log"])
  assert seen["log"] == result.learner["env_steps"].tolist()
  assert result.learner["loss"][-1] > 0
  assert seen["episode"] == result.episodes["episode"].tolist()
  assert seen["evaluation"].env_steps == end and len(seen["evaluation"].episodes) == 2
  assert result.summary["stop_reason"] == "enough"


def test_an_own_agent_and_pickles(agent):
  result = explorax.train(agent.core, ENV, episodes=np.int64(9), log_every=50.0)
  assert math.isnan(result.episodes["loss"][0])
  assert len(set(explorax.evaluate(result, Pure(), episodes=3))) == 1
  copy = pickle.loads(pickle.dumps(agent))
  assert (copy.settings, copy.config) == (agent.settings, agent.config)


@pytest.mark.parametrize(
  ("env", "flags", "sentence"),
  [
    (ENV, {}, "give --episodes or --steps"),
    (ENV, {"step": 5}, "train takes no 'step'."),
    (ENV, {"steps": "20"}, "steps"),
    (ENV, {"steps": 9, "eval_every": 2.5}, "eval_every"),
    ("jax:chain/6", {"steps": 5}, "was made for"),
    (Corridor(), {"steps": 5, "eval_every": 1}, "needs a second environment"),
    (environments.make(ENV, seed=0), {"steps": 5, "runner": "distributed"}, "make env"),
  ],
)
def test_refuses_in_a_sentence(agent, env, flags, sentence):
  with pytest.raises(ValueError, match=sentence) as refused:
    explorax.train(agent, env, **flags)
  assert "\n" not in str(refused.value)


def test_a_setting_is_a_value_and_not_its_text():
  with pytest.raises(ValueError, match="batch_size is '8'"):
    explorax.make_agent("dqn", ENV, batch_size="8")
