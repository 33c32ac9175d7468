"""Deep exploration solves Deep Sea."""

import dataclasses
from collections.abc import Sequence

import pytest

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.runners import common, local

ENV = "bsuite:deep_sea/0"  # N = 10.
SMALL = {"hidden_sizes": (20,), "batch_size": 32, "num_members": 5}


@pytest.mark.parametrize(
  ("name", "changes"), [("tdu", {"num_explorers": 5}), ("bootstrapped_dqn", {})]
)
def test_deep_exploration_solves_it(name, changes):
  environment = environments.make(ENV, seed=0)
  preset = presets.PRESETS[name]
  config = dataclasses.replace(preset.config, **SMALL, **changes)
  rule = environments.solved_rule(ENV)
  assert rule is not None

  def on_episodes(episodes: Sequence[common.Episode]) -> None:
    for episode in episodes:
      rule.add_episode(episode.episode, episode.metrics)

  local.run(
    preset.make_agent(config, environments.spec(environment)),
    environment,
    config_lib.RunConfig(replay="memory", episodes=300),
    common.Hooks(on_episodes=on_episodes, stop=lambda: rule.solved_episode is not None),
  )
  # The first episode at which the average regret is below 0.9, as bsuite has it.
  assert rule.solved_episode is not None and rule.solved_episode > 20
