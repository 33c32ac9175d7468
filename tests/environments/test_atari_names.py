"""How Atari games, profiles and settings are named; none of it needs ale-py."""

import dataclasses

import pytest

from explorax import environments
from explorax.environments import atari57, atari_environments, atari_profiles

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


def test_every_field_can_be_set_by_name():
  for field in dataclasses.fields(atari_profiles.Profile):
    value = getattr(DQN, field.name)
    changed = not value if isinstance(value, bool) else value + 1
    if field.name == "sticky":
      changed = 0.5
    _, profile = atari_profiles.parse(f"Pong/{field.name}={str(changed).lower()}")
    assert profile == dataclasses.replace(DQN, **{field.name: changed})


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("Pong/ngus", "did you mean 'ngu'"),
    ("Pong/", "dqn, ngu, rgb"),
    ("Pong/ngu,stick=1", "did you mean 'sticky'"),
    ("Pong/ngu,sticky", "'sticky'"),
    ("Pong/sticky=much", "'much'"),
    ("Pong/sticky=1", "sticky"),
    ("Pong/stack=0", "stack"),
    ("Pong/max_frames=33", "33"),
    ("Pong/noops=-1", "noops"),
    ("Pong/ngu,meta_episode=2,life_loss=true", "meta_episode"),
  ],
)
def test_unknown_names_are_refused(name, message):
  with pytest.raises(ValueError, match=message) as caught:
    environments.make(f"atari:{name}", seed=0)
  assert "\n" not in str(caught.value)


def test_the_games_of_the_papers():
  names = atari_environments.names()
  assert len(set(names)) == 60
  assert {"atari:MontezumaRevenge", "atari:Qbert", "atari:Pooyan"} < set(names)
  assert len(atari57.references()) == 57
