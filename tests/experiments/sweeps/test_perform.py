"""A task gives the results of a single run, with each runner; users' own agents."""

import dataclasses

import dm_env
import pytest
from bsuite import bsuite
from bsuite.baselines import experiment
from bsuite.baselines.random import agent as random_agent

from explorax import environments
from explorax.environments import bsuite_environments
from explorax.experiments import config as config_lib
from explorax.experiments import errors, presets
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.runners import core, local
from explorax.experiments.sweeps import perform, records, user_agents
from explorax.experiments.tasks import types, worker

SOURCE = """
import sys
import numpy as np


class Random:
  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values
    self.seen = []

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    self.seen.append((timestep.step_type, action, new_timestep.step_type))


def without_seed(observation_spec, action_spec):
  return Random(observation_spec, action_spec, 0)


def global_numpy(observation_spec, action_spec):
  return Random(observation_spec, action_spec, np.random.randint(2**31))


def of_no_use(observation_spec, action_spec):
  return 3


def other_arguments(observation_spec, action_spec, learning_rate):
  pass


class Illegal(Random):
  def select_action(self, timestep):
    return 7


class Fraction(Random):
  def select_action(self, timestep):
    return 0.0


class Quits(Random):
  def update(self, timestep, action, new_timestep):
    sys.exit("enough")


number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
  name = f"agents_{tmp_path.name.replace('-', '_')}"
  (tmp_path / f"{name}.py").write_text(SOURCE)
  monkeypatch.chdir(tmp_path)
  return name


def _settings(agent, bsuite_id="catch/0", seed=0, episodes=5, **context):
  run = records.Run(agent, bsuite_id, seed)
  task = records.task(run, {}, episodes, context)
  return {**task.settings, **task.context}


def _perform(*args, **kwargs):
  ticks = []
  settings = _settings(*args, **kwargs)
  results = perform.perform(settings, types.TaskContext(ticks.append))
  assert ticks[-1] == 1.0 and ticks == sorted(ticks)
  assert len(ticks) == settings["num_episodes"]
  return results


@pytest.fixture
def small(monkeypatch):
  """A DQN that is small, and begins to learn at once."""
  preset = presets.PRESETS["dqn"]
  config = dataclasses.replace(
    preset.config, hidden_sizes=(4,), batch_size=4, min_replay_size=8
  )
  preset = dataclasses.replace(preset, config=config)
  monkeypatch.setitem(presets.PRESETS, "dqn", preset)
  return preset


def test_a_task_is_the_run_of_that_seed(small):
  results = _perform("dqn", "catch/0", seed=4)
  assert results["runner"] == "local"
  environment = environments.make("bsuite:catch/0", seed=4)
  agent = small.make_agent(small.config, environments.spec(environment))
  episodes = []
  local.run(
    agent,
    environment,
    config_lib.RunConfig(seed=4, replay="memory", episodes=5),
    core.Hooks(on_episode=episodes.append),
  )
  rows = results["rows"]
  assert [row["episode_return"] for row in rows] == [
    episode.episode_return for episode in episodes
  ]
  assert rows[-1]["total_regret"] == environment.raw.bsuite_info()["total_regret"]
  assert rows == _perform("dqn", "catch/0", seed=4)["rows"]


@pytest.mark.parametrize(
  ("bsuite_id", "runner", "killed_after", "episodes"),
  [("catch/0", "local", 3, 5), ("deep_sea/0", "device", 20, 31)],
)
def test_a_task_resumes_where_it_was_interrupted(
  small, tmp_path, bsuite_id, runner, killed_after, episodes
):
  often = {"checkpoint_minutes": 1e-9}
  settings = _settings("dqn", bsuite_id, 1, episodes, **often)
  whole = perform.perform(settings, types.TaskContext())
  assert whole["runner"] == runner

  def killing(share):
    if share * episodes >= killed_after:
      raise types.InterruptedTaskError

  folder = tmp_path / "unfinished"
  with pytest.raises(types.InterruptedTaskError):
    perform.perform(settings, types.TaskContext(killing, folder))
  assert any(folder.glob("step_*"))
  ticks = []
  context = types.TaskContext(ticks.append, folder)
  assert perform.perform(settings, context) == whole
  assert 0 < ticks[0] * episodes - 1 < killed_after and context.seconds_before > 0
  if runner == "device":
    rows = whole["rows"]
    logged = [row["episode"] for row in rows]
    assert logged == [*range(1, 11), 12, 14, 17, 20, 25, 30]
    assert [row["steps"] for row in rows] == [10 * episode for episode in logged]
    assert rows[-1]["total_bad_episodes"] <= 30


def test_checkpoints_that_do_not_fit_are_not_resumed(tmp_path, monkeypatch):
  settings = _settings("dqn", "catch/0", checkpoint_minutes=1.0)
  context = types.TaskContext(folder=tmp_path)
  rows = [{"steps": 9, "total_return": 0.1}]
  checkpoints, found = perform._checkpoints(settings, context)
  assert found == {}
  checkpoints.companion = perform._companion(rows, dict, lambda: False)
  assert checkpoints.save(9, checkpointer.Snapshot({}, {}))
  assert perform._checkpoints(settings, context)[1]["rows"] == rows
  with monkeypatch.context() as patch:
    patch.setattr(records, "REVISION", 99)
    assert perform._checkpoints(settings, context)[1] == {}
  assert checkpoints.save(9, checkpointer.Snapshot({}, {}))
  (record,) = tmp_path.glob("step_*/record.json")
  record.write_bytes(record.read_bytes()[:-1])
  assert perform._checkpoints(settings, context)[1] == {}
  assert perform._checkpoints(settings, types.TaskContext()) == (None, {})


@pytest.mark.parametrize("name", ["Random", "without_seed", "global_numpy"])
def test_an_agent_of_the_users_own(module, name):
  agent = f"{module}:{name}"
  results = _perform(agent, seed=3)
  assert results["runner"] == "own"
  assert [row["steps"] for row in results["rows"]] == [9, 18, 27, 36, 45]
  assert results == _perform(agent, seed=3) != _perform(agent, seed=4)


def test_the_loop_is_bsuites():
  """With the random agent of its baselines, in an environment of theirs."""
  theirs = bsuite.load_from_id("catch/0")
  bsuite_environments.reseed(theirs, 5)
  returns = []

  class Watching(dm_env.Environment):
    reset, observation_spec = theirs.reset, theirs.observation_spec
    action_spec = theirs.action_spec

    def step(self, action):
      timestep = theirs.step(action)
      if timestep.last():
        returns.append(timestep.reward)
      return timestep

  agent = random_agent.Random(theirs.action_spec(), seed=5)
  experiment.run(agent, Watching(), num_episodes=6)
  rows = _perform("bsuite.baselines.random:default_agent", seed=5, episodes=6)["rows"]
  assert [row["episode_return"] for row in rows] == returns


def test_an_agent_sees_every_transition_once(module):
  environment = environments.make("bsuite:catch/0", seed=0)
  agent = user_agents.make(f"{module}:Random", environment, 0)
  user_agents.run(agent, environment, 2, lambda episode: None)
  first, mid, last = dm_env.StepType
  steps = [(a, b) for a, _, b in agent.seen]
  assert steps == 2 * [(first, mid), *[(mid, mid)] * 7, (mid, last)]
  assert {type(action) for _, action, _ in agent.seen} == {int}


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("Illegal", "the action 7; it must be one integer from 0 to 2"),
    ("Fraction", "the action 0.0; it must be one integer"),
    ("Quits", "SystemExit: enough"),
    ("of_no_use", "returned a int without the method 'select_action'"),
    ("other_arguments", "its signature is"),
  ],
)
def test_errors_of_an_agent_are_reported(module, name, message, tmp_path):
  settings = _settings(f"{module}:{name}")
  outcome = worker.attempt(worker.Assignment(perform.FUNCTION, settings, tmp_path), id)
  assert outcome.results is None and message in outcome.problem
  assert ".py, line " in outcome.problem and "Traceback" in outcome.details


def test_unknown_functions_are_refused(module, tmp_path):
  (tmp_path / "leaving_module_of_mine.py").write_text("import sys; sys.exit('usage')")
  for name, message in {
    f"{module}:Randm": "Did you mean Random",
    f"{module}:number": "is not a function",
    "no_such_module_of_mine:make": "No module named",
    "leaving_module_of_mine:make": "SystemExit: usage",
  }.items():
    with pytest.raises(errors.SetUpError, match=message):
      user_agents.find(name)


def test_the_settings_of_an_agent_are_its_source(module, tmp_path):
  (tmp_path / f"partial_{module}.py").write_text(
    f"import functools, {module}\nmake = functools.partial({module}.Random)\n"
  )
  names = (f"{module}:Random", f"partial_{module}:make")
  for changed in (module, f"partial_{module}"):
    before = [user_agents.settings(name) for name in names]
    assert before[0]["module"] == module
    with open(tmp_path / f"{changed}.py", "a") as file:
      file.write("# changed\n")
    after = [user_agents.settings(name) for name in names]
    assert (after[0] != before[0]) == (changed == module)
    assert after[1] != before[1]


def test_a_task_without_its_data_fails():
  with pytest.raises(Exception, match="needs the MNIST files"):
    _perform("dqn", "mnist/0", mnist_dir="/nowhere")
