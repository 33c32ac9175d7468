"""Scores on Atari-57 by hand, and names of games and profiles; none needs ale-py."""

import dataclasses

import pytest

from explorax import environments
from explorax.environments import atari57, atari_profiles

DQN, NGU = (atari_profiles.PROFILES[name] for name in ("dqn", "ngu"))


def test_human_normalised_scores_by_hand():
  assert atari57.human_normalised_score("pong", -20.7) == 0.0
  assert atari57.human_normalised_score("pong", 14.6) == 1.0
  assert atari57.human_normalised_score("Pong", 20.0) == pytest.approx(40.7 / 35.3)
  # Montezuma's Revenge: random 0, human 4753.3.
  for name in ("montezuma_revenge", "MontezumaRevenge"):
    assert atari57.human_normalised_score(name, 9506.6) == pytest.approx(2.0)
  # Skiing's scores are negative, but a human's is the greater one.
  assert 0.0 < atari57.human_normalised_score("skiing", -10_000.0) < 1.0


def test_the_table_has_57_games_in_which_humans_are_better():
  table = atari57.references()
  assert len(table) == 57
  assert all(human > random for random, human in table.values())
  assert table["alien"] == (227.8, 7127.7)


@pytest.mark.parametrize(
  ("game", "score"), [("pongg", 1.0), ("Pooyan", 1.0), ("pong", float("nan"))]
)
def test_unknown_games_and_invalid_scores_are_refused(game, score):
  with pytest.raises(ValueError, match=game):
    atari57.human_normalised_score(game, score)


def test_published_scores():
  """Badia et al. (2020), section 4.2: NGU is above human level on 51 of 57 games."""
  ngu = atari57.published("badia")["ngu"]
  normalised = [atari57.human_normalised_score(*item) for item in ngu.items()]
  assert len(normalised) == 57 and sum(x > 1 for x in normalised) == 51
  assert atari57.published("chen")["ucb"]["alien"] == 2817.6
  games = set(atari57.published("munos")["dqn"])
  assert games - set(atari57.references()) == set(atari57.BEYOND)


@pytest.mark.parametrize(
  ("name", "profile"),
  [
    ("Pong", DQN),
    (
      "Pong/ngu,life_loss=true,noops=0",
      dataclasses.replace(NGU, life_loss=True, noops=0),
    ),
  ],
)
def test_names_of_games_and_profiles(name, profile):
  assert atari_profiles.parse(name) == ("Pong", profile)


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
    ("Pong/sticky=1", "sticky"),
    ("Pong/max_frames=33", "33"),
  ],
)
def test_unknown_names_are_refused(name, message):
  with pytest.raises(ValueError, match=message):
    environments.make(f"atari:{name}", seed=0)
