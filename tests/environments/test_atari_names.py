"""How Atari games, profiles and settings are named; none of it needs ale-py."""

import dataclasses

import pytest

from explorax import environments
from explorax.environments import atari_profiles

pytestmark = pytest.mark.ops
DQN = atari_profiles.PROFILES["dqn"]
NGU = atari_profiles.PROFILES["ngu"]


@pytest.mark.parametrize(
  ("name", "game", "profile"),
  [
    ("Pong", "Pong", DQN),
    ("Pong/dqn", "Pong", DQN),
    ("MontezumaRevenge/ngu", "MontezumaRevenge", NGU),
    ("Pong/sticky=0.25", "Pong", dataclasses.replace(DQN, sticky=0.25)),
    (
      "Pong/ngu,life_loss=true,noops=0",
      "Pong",
      dataclasses.replace(NGU, life_loss=True, noops=0),
    ),
    (
      "Pong/ngu,full_actions=false,stack=2",
      "Pong",
      dataclasses.replace(NGU, full_actions=False, stack=2),
    ),
  ],
)
def test_names(name, game, profile):
  assert atari_profiles.parse(name) == (game, profile)


def test_the_papers_profiles():
  """Table 8 of Badia et al.; Mnih et al. 2015; appendix C of Dabney et al."""
  assert {name: p.shape for name, p in atari_profiles.PROFILES.items()} == {
    "dqn": (84, 84, 4),
    "ngu": (84, 84, 1),
    "rgb": (210, 160, 3),
  }
  for profile in atari_profiles.PROFILES.values():
    assert (profile.action_repeat, profile.noops) == (4, 30)
    assert profile.max_frames == 30 * 60 * 60
    assert not profile.life_loss and profile.sticky == 0.0
  assert NGU.full_actions and not DQN.full_actions


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("Pong/ngus", "Did you mean ngu"),
    ("Pong/", "dqn, ngu, rgb"),
    ("Pong/ngu,stick=1", "Did you mean sticky"),
    ("Pong/ngu,sticky", "'sticky'"),
    ("Pong/sticky=much", "'much'"),
    ("Pong/sticky=1", "sticky"),
    ("Pong/stack=0", "stack"),
    ("Pong/max_frames=33", "33"),
    ("Pong/noops=-1", "noops"),
  ],
)
def test_unknown_names_are_refused(name, message):
  with pytest.raises(ValueError, match=message) as caught:
    environments.make(f"atari:{name}", seed=0)
  assert "\n" not in str(caught.value)
