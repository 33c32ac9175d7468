"""Single tasks: by each runner, as one run alone has them; agents of the user's own."""

import dataclasses

import dm_env
import pytest
from bsuite import bsuite
from bsuite.baselines import experiment
from bsuite.baselines.random import agent as random_agent

from explorax import environments
from explorax.environments import bsuite_environments
from explorax.experiments import errors, output, presets
from explorax.experiments.checkpoints import keeper
from explorax.experiments.runners import local
from explorax.experiments.sweeps import perform, tasks, unfinished, user_agents

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


def _perform(agent, bsuite_id="catch/0", seed=0, episodes=5):
  ticks = []
  task = tasks.Task(agent, bsuite_id, seed, episodes)
  outcome = perform.perform(task, "/nowhere", ticks.append)
  if outcome.rows is not None:
    assert ticks[-1] == 1.0 and ticks == sorted(ticks) and len(ticks) == episodes
  return outcome


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
  outcome = _perform("dqn", "catch/0", seed=4)
  assert (outcome.runner, outcome.problem) == ("local", "")
  environment = environments.make("bsuite:catch/0", seed=4)
  agent = small.make_agent(small.config, environments.spec(environment))
  episodes = []
  local.run(
    agent,
    environment,
    seed=4,
    replay="memory",
    num_episodes=5,
    on_episode=episodes.append,
  )
  assert [row["episode_return"] for row in outcome.rows] == [
    episode.episode_return for episode in episodes
  ]
  assert (
    outcome.rows[-1]["total_regret"] == environment.raw.bsuite_info()["total_regret"]
  )
  assert outcome.rows == _perform("dqn", "catch/0", seed=4).rows


class _Killed(BaseException):
  """Nobody catches it, like the signal."""


@pytest.mark.parametrize(
  ("bsuite_id", "runner", "killed_after", "episodes"),
  [("catch/0", "local", 7, 12), ("deep_sea/0", "device", 60, 71)],
)
def test_a_task_goes_on_where_it_was_killed(
  small, tmp_path, bsuite_id, runner, killed_after, episodes
):
  place = unfinished.prepare(output.RunDirectory.create(tmp_path), 1e-9)
  task = tasks.Task("dqn", bsuite_id, 1, episodes)
  whole = perform.perform(task, "/nowhere", lambda share: None)
  assert (whole.runner, whole.problem) == (runner, "")

  def killing(share):
    if share * episodes >= killed_after:
      raise _Killed

  with pytest.raises(_Killed):
    perform.perform(task, "/nowhere", killing, place)
  assert unfinished.exists(tmp_path, task)
  ticks = []
  outcome = perform.perform(task, "/nowhere", ticks.append, place)
  assert outcome.problem == "" and outcome.rows == whole.rows
  assert 0 < ticks[0] * episodes - 1 < killed_after
  if runner == "device":
    rows = outcome.rows
    logged = [row["episode"] for row in rows]
    assert logged == [*range(1, 11), 12, 14, 17, 20, 25, 30, 40, 50, 60, 70]
    assert [row["steps"] for row in rows] == [10 * episode for episode in logged]
    assert rows[-1]["total_bad_episodes"] <= 70


def test_checkpoints_of_other_settings_or_damaged_ones_are_not_gone_on_from(tmp_path):
  place = unfinished.prepare(output.RunDirectory.create(tmp_path), 1.0)
  task = tasks.Task("dqn", "catch/0", 1, 5)
  rows = [{"steps": 9, "total_return": 0.1}]

  def leave():
    with unfinished.open_saves(place, task, {"rate": 1}) as saves:
      saves.attach(rows, dict, lambda: False)
      assert saves.keeper.save(9, keeper.Snapshot({}, {}))

  def found(task, settings):
    with unfinished.open_saves(place, task, settings) as saves:
      return saves.rows

  leave()
  assert found(task, {"rate": 1}) == rows
  assert found(task, {"rate": 2}) == []
  assert not unfinished.exists(tmp_path, task)
  leave()
  assert found(dataclasses.replace(task, episodes=6), {"rate": 1}) == []
  leave()
  (record,) = tmp_path.glob("unfinished/dqn/seed1/catch-0/step_*/record.json")
  record.write_bytes(record.read_bytes()[:-1])
  assert found(task, {"rate": 1}) == []


def test_a_task_that_fails_leaves_no_checkpoint(small, tmp_path):
  place = unfinished.prepare(output.RunDirectory.create(tmp_path), 1e-9)
  task = tasks.Task("dqn", "catch/0", 1, 5)

  def breaking(share):
    if share > 0.5:
      assert unfinished.exists(tmp_path, task)
      raise ArithmeticError

  assert perform.perform(task, "/nowhere", breaking, place).rows is None
  assert not unfinished.exists(tmp_path, task)


def test_a_folder_of_the_same_name_on_another_machine_is_not_used(small, tmp_path):
  place = unfinished.prepare(output.RunDirectory.create(tmp_path), 1e-9)
  task = tasks.Task("dqn", "catch/0", 1, 2)
  elsewhere = place._replace(token="another")
  assert perform.perform(task, "/nowhere", lambda share: None, elsewhere).rows
  assert not [*tmp_path.glob("unfinished/*/*")]


@pytest.mark.parametrize("name", ["Random", "without_seed", "global_numpy"])
def test_an_agent_of_the_users_own(module, name):
  agent = f"{module}:{name}"
  outcome = _perform(agent, seed=3)
  assert (outcome.runner, outcome.problem) == ("own", "")
  assert [row["steps"] for row in outcome.rows] == [9, 18, 27, 36, 45]
  assert outcome.rows == _perform(agent, seed=3).rows
  assert outcome.rows != _perform(agent, seed=4).rows


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
  outcome = _perform("bsuite.baselines.random:default_agent", seed=5, episodes=6)
  assert [row["episode_return"] for row in outcome.rows] == returns


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
    ("of_no_use", "returned a int, which has no method 'select_action'"),
    ("other_arguments", "its signature is"),
  ],
)
def test_what_an_agent_does_wrong_is_said(module, name, message):
  outcome = _perform(f"{module}:{name}")
  assert outcome.rows is None and message in outcome.problem
  assert ".py, line " in outcome.problem and "Traceback" in outcome.details


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("Randm", "Did you mean Random"),
    ("number", "has no function 'number'"),
  ],
)
def test_unknown_functions_are_refused(module, name, message):
  with pytest.raises(errors.SetUpError, match=message):
    user_agents.find(f"{module}:{name}")


def test_modules_that_cannot_be_imported_are_refused(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(errors.SetUpError, match="cannot be imported"):
    user_agents.find("no_such_module_of_mine:make")
  (tmp_path / "broken_module_of_mine.py").write_text("1 / 0")
  with pytest.raises(errors.SetUpError, match="raises ZeroDivisionError"):
    user_agents.find("broken_module_of_mine:make")
  (tmp_path / "leaving_module_of_mine.py").write_text("import sys; sys.exit('usage')")
  with pytest.raises(errors.SetUpError, match="raises SystemExit"):
    user_agents.find("leaving_module_of_mine:make")


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
  outcome = _perform("dqn", "mnist/0")
  assert outcome.rows is None and "needs the MNIST files" in outcome.problem
