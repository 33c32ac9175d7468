"""The users' own agents: their loop, their names, and their runs."""

import json
import pathlib

import dm_env
import pytest
from bsuite import bsuite
from bsuite.baselines import experiment
from bsuite.baselines.random import agent as random_agent

from explorax import environments
from explorax.environments import bsuite_environments
from explorax.experiments import config as config_lib
from explorax.experiments import run
from explorax.experiments.runners import common, user_agents

MORE_AGENTS = """

class Recording(Random):
  transitions = ()

  def update(self, timestep, action, new_timestep):
    self.transitions += ((timestep.step_type, action, new_timestep.step_type),)


def global_numpy(observation_spec, action_spec):
  return Random(observation_spec, action_spec, np.random.randint(2**31))


def other_arguments(observation_spec, action_spec, learning_rate):
  pass


class Illegal(Random):
  def select_action(self, timestep):
    return 7


class Fraction(Random):
  def select_action(self, timestep):
    return 0.0
"""


@pytest.fixture
def module(agents, tmp_path):
  with open(tmp_path / f"{agents}.py", "a") as file:
    file.write(MORE_AGENTS)
  return agents


def _train(name, env="bsuite:catch/0", seed=0, hooks=common.NO_HOOKS, **limits):
  environment = environments.make(env, seed=seed)
  agent = user_agents.make(name, environments.spec(environment), seed)
  config = config_lib.RunConfig(agent=name, env=env, seed=seed, **limits)
  (result,) = user_agents.run(agent, environment, config, hooks)
  return agent, result


def test_a_run_leaves_its_files_and_repeats(module):
  argv = [f"--agent={module}:global_numpy", "--env=bsuite:catch/0", "--episodes=5"]
  for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
    assert run.main([*argv, f"--seed={seed}", f"--output={folder}"]) == 0
  files = {path.name for path in pathlib.Path("a").iterdir()}
  assert {"config.json", "metrics.csv", "summary.json", "bsuite"} <= files
  assert "checkpoints" not in files
  assert json.loads(pathlib.Path("a/summary.json").read_text())["episodes"] == 5
  first, second, other = (
    next(pathlib.Path(x, "bsuite").iterdir()).read_text() for x in "abc"
  )
  assert first == second != other


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
  episodes = []
  hooks = common.Hooks(on_episodes=episodes.extend)
  _train("bsuite.baselines.random:default_agent", seed=5, hooks=hooks, episodes=6)
  assert [episode.episode_return for episode in episodes] == returns


def test_an_agent_receives_every_transition_once(module):
  agent, result = _train(f"{module}:Recording", steps=20)
  first, mid, last = dm_env.StepType
  steps = [(a, b) for a, _, b in agent.transitions]
  whole = [(first, mid), *[(mid, mid)] * 7, (mid, last)]
  assert steps == (3 * whole)[:20]
  assert (result.env_steps, result.episodes, result.interrupted) == (20, 2, False)
  assert {type(action) for _, action, _ in agent.transitions} == {int}


@pytest.mark.parametrize(
  ("name", "error", "named"),
  [
    ("Illegal", ValueError, "action 7"),
    ("Fraction", ValueError, r"action 0\.0"),
    ("other_arguments", TypeError, "learning_rate"),
  ],
)
def test_invalid_agents_are_refused(module, name, error, named):
  with pytest.raises(error, match=named):
    _train(f"{module}:{name}", episodes=1)
