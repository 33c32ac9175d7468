"""Deep exploration solves Deep Sea."""

import pytest

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.runners import common, local

N_10 = "bsuite:deep_sea/0"


def solved_episode(name: str, env: str, max_episodes: int) -> int | None:
  """The first episode at which the average regret is below 0.9, as bsuite has it."""
  environment = environments.make(env, seed=0)
  preset = presets.PRESETS[name]
  agent = preset.make_agent(preset.config, environments.spec(environment))
  rule = environments.solved_rule(env)
  assert rule is not None

  def on_episode(episode: common.Episode) -> None:
    rule.add_episode(episode.episode, episode.metrics)

  local.run(
    agent,
    environment,
    config_lib.RunConfig(replay="memory", episodes=max_episodes),
    common.Hooks(on_episode=on_episode, stop=lambda: rule.solved_episode is not None),
  )
  return rule.solved_episode


@pytest.mark.parametrize("name", ["tdu", "bootstrapped_dqn"])
def test_deep_exploration_solves_it(name):
  episode = solved_episode(name, N_10, max_episodes=300)
  assert episode is not None and episode > 20
