"""The report of runs on Atari: numbers over games, by game, and real runs."""

import numpy as np
import pytest

from explorax.environments import atari57, atari_profiles
from explorax.experiments import report

pytest.importorskip("matplotlib")

REPEATS = 40  # Episodes of a run.


def _env(game, profile=""):
  return f"atari:{atari_profiles.camel_case(game)}{profile}"


def _return(game, score):
  random, human = atari57.references()[game]
  return random + score * (human - random)


def test_numbers_over_games_by_hand(write_run, tmp_path, read_tables):
  """Two agents see other frames, and one is twice as good in each game."""
  scores = {"gravitar": (0.0, 0.5, 1.0), "pitfall": (0.5, 1.0, 1.5)}
  for game, of_seeds in scores.items():
    for seed, score in enumerate(of_seeds):
      for agent, factor, profile in (
        ("dqn", 1, ""),
        ("rainbow", 2, "/dqn,life_loss=true"),
      ):
        values = np.full(REPEATS, _return(game, factor * score))
        write_run(f"out/{agent}/{game}{seed}", agent, _env(game, profile), seed, values)
  assert report.main(["out"]) == 0
  tables = read_tables(tmp_path / "out/report")
  shown = {
    (row["number"], row["agent"]): float(row["score"])
    for row in tables["Human-normalised scores over games"]
  }
  assert shown == {
    ("median", "dqn"): 0.75,
    ("median", "rainbow"): 1.5,
    ("mean", "dqn"): 0.75,
    ("mean", "rainbow"): 1.5,
    ("interquartile mean", "dqn"): 0.75,
    ("interquartile mean", "rainbow"): 1.5,
    ("human gap", "dqn"): 0.25,
    ("human gap", "rainbow"): 0.0,
  }
  by_game = tables["Mean human-normalised scores by game"]
  assert [(x["game"], x["agent"], x["score"]) for x in by_game[:2]] == [
    ("gravitar", "dqn", "0.50"),
    ("gravitar", "rainbow", "1.00"),
  ]


def test_scores_are_of_evaluations_or_of_whole_games(write_run, tmp_path, read_tables):
  """A game of three lives has returns 1 + 2 + 3; evaluations replace training."""
  lives = {
    "returns": [1.0, 2.0, 3.0] * 13,
    "metrics": {"game_return": [1.0, 3.0, 6.0] * 13, "game_over": [0.0, 0.0, 1.0] * 13},
  }
  env = _env("pong", "/dqn,life_loss=true")
  write_run("out/lives", "rainbow", env, **lives)
  write_run("out/games", "dqn", _env("pong"), returns=np.full(REPEATS, 6.0))
  for agent, score in (("dqn", 100.0), ("tdu", 300.0)):
    evaluations = {200: [0.0], 400: [0.0, 2 * score]}
    write_run(f"out/{agent}", agent, _env("qbert"), evaluations=evaluations)
  assert report.main(["out"]) == 0
  tables = read_tables(tmp_path / "out/report")
  returns = {
    (row["environment"], row["agent"]): (row["return"], row["of"])
    for row in tables["Returns at the end of runs"]
  }
  of_pong, of_qbert = "training at step 390", "evaluations at step 400"
  assert returns == {
    ("atari:Pong", "dqn"): ("6", of_pong),
    ("atari:Pong", "rainbow"): ("6", of_pong),
    ("atari:Qbert", "dqn"): ("100", of_qbert),
    ("atari:Qbert", "tdu"): ("300", of_qbert),
  }


def test_preprocessing_is_in_the_name_of_an_agent(write_run, capsys):
  for name, profile in (("plain", ""), ("sticky", "/sticky=0.25")):
    write_run(f"out/{name}", "dqn", _env("pong", profile))
  assert report.main(["out"]) == 0
  out = capsys.readouterr().out
  assert "`dqn@sticky=0.0`" in out and "`dqn@sticky=0.25`" in out
