"""The report of runs on Atari: numbers over games, by game, and real runs."""

import csv
import json
import re

import numpy as np
import pytest

from explorax.environments import atari57, atari_profiles
from explorax.experiments import report, sweep

pytest.importorskip("matplotlib")

GAMES = list(atari57.references())
REPEATS = 40  # Episodes of a run.


def _env(game, profile=""):
  return f"atari:{atari_profiles.camel_case(game)}{profile}"


def _return(game, score):
  random, human = atari57.references()[game]
  return random + score * (human - random)


def _table(page, name):
  """The rows of a table: the text of each cell."""
  _, _, table = page.partition(f'aria-label="{name}"')
  rows = re.findall(r"<tr>(.*?)</tr>", table.partition("</table>")[0], re.DOTALL)
  cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", x, re.DOTALL) for x in rows]
  return [[re.sub(r"<[^>]*>", " ", x).split() for x in row] for row in cells]


@pytest.mark.slow
def test_numbers_over_57_games_by_hand(write_run, tmp_path, capsys):
  """Two agents see other frames, and one is twice as good in each game."""
  scores = {"dqn": {}, "rainbow": {}}
  for i, game in enumerate(GAMES):
    level = (i + 1) / 29
    for agent, factor in (("dqn", 1.0), ("rainbow", 2.0)):
      scores[agent][game] = [factor * (level + x) for x in (-0.5, 0.0, 0.5)]
      profile = "" if agent == "dqn" else "/dqn,life_loss=true"
      for seed, score in enumerate(scores[agent][game]):
        values = np.full(REPEATS, _return(game, score))
        write_run(f"out/{agent}/{game}{seed}", agent, _env(game, profile), seed, values)
  assert report.main(["out"]) == 0
  out = capsys.readouterr().out
  for agent, of_games in scores.items():
    means = sorted(sum(x) / 3 for x in of_games.values())
    every = sorted(x for each in of_games.values() for x in each)
    cut = len(every) // 4
    expected = {
      "median": means[28],
      "mean": sum(means) / 57,
      "interquartile mean": sum(every[cut:-cut]) / (len(every) - 2 * cut),
      "optimality gap": 1 - sum(min(1, x) for x in every) / len(every),
      "human gap": 1 - sum(min(1, x) for x in means) / 57,
    }
    for name, value in expected.items():
      _, _, text = out.partition(f"Atari-57, {name} of")
      pattern = rf"{agent} +57 games +(\S+) +\[(\S+), (\S+)\]"
      shown, low, high = map(float, re.search(pattern, text).groups())
      assert shown == pytest.approx(value, abs=0.006), (agent, name)
      assert low < shown < high < low + 0.8
  page = (tmp_path / "out/report/report.html").read_text(encoding="utf-8")
  assert "rainbow over dqn, final: better in 57 of 57 games" in page
  rows = {" ".join(row[0]): row[1:] for row in _table(page, "Scores by game")}
  mean = float(np.mean([_return("pong", x) for x in scores["dqn"]["pong"]]))
  random, human, dqn, *_ = rows["pong"]
  assert (random, human, dqn[0]) == (["-20.7"], ["14.6"], f"{mean:,.1f}")
  header = [" ".join(cell) for cell in _table(page, "Scores by game")[0]]
  by_source = dict(zip(header[1:], rows["pong"], strict=True))
  assert by_source["ucb, Chen et al. (2017), table 2"] == ["20.9"]
  published = {
    " ".join(x[0]): x[1:] for x in _table(page, "Published scores over games")
  }
  assert published["ngu Badia et al. (2020), table 10"][:2] == [["57"], ["12.08"]]
  hard = {
    " ".join(x[0]): x[1:] for x in _table(page, "Scores by difficulty of exploration")
  }
  expected = np.mean([scores["dqn"][game] for game in atari57.HARD_EXPLORATION])
  count, dqn, _ = hard["hard exploration"]
  assert count == ["6"] and float(dqn[0]) == pytest.approx(expected, abs=0.006)


def test_scores_are_of_evaluations_or_of_whole_games(write_run, capsys):
  """A game of three lives has returns 1 + 2 + 3; evaluations replace training."""
  lives = write_run("out/lives", "rainbow", _env("pong", "/dqn,life_loss=true"))
  with open(lives / "metrics.csv", newline="") as file:
    header, *rows = csv.reader(file)
  at = header.index("episode_return")
  for i, row in enumerate(rows[:39]):
    row[at] = str(float(i % 3 + 1))
    row += [str(float(sum(range(1, i % 3 + 2)))), str(float(i % 3 == 2))]
  with open(lives / "metrics.csv", "w", newline="") as file:
    names = [*header, "game_return", "game_over"]
    csv.writer(file).writerows([names, *rows[:39]])
  write_run("out/games", "dqn", _env("pong"), returns=np.full(REPEATS, 6.0))
  evaluated = [write_run(f"out/{x}", x, _env("qbert")) for x in ("dqn", "tdu")]
  for path, score in zip(evaluated, (100.0, 300.0), strict=True):
    lines = ["env_steps,episode,episode_return,episode_length"]
    lines += [f"{n},{k},{score * n * k / 600},9" for n in (200, 400) for k in (1, 2)]
    (path / "evaluation.csv").write_text("\n".join(lines))
  assert report.main(["out"]) == 0
  out = capsys.readouterr().out
  of_pong, of_qbert = out.split("atari:Qbert, return of evaluations at step 400")
  assert re.findall(r"(dqn|rainbow) +1 seed +(\S+)", of_pong) == [
    ("dqn", "6.000"),
    ("rainbow", "6.000"),
  ]
  assert re.findall(r"(dqn|tdu) +1 seed +(\S+)", of_qbert) == [
    ("dqn", "100.0"),
    ("tdu", "300.0"),
  ]
  assert "played different games" in out


def test_what_does_not_belong_together_is_said(write_run, capsys):
  for name, profile in (("plain", ""), ("sticky", "/sticky=0.25")):
    write_run(f"out/{name}", "dqn", _env("pong", profile))
  write_run("out/other", "dqn", _env("pooyan"))
  assert report.main(["out", "--baseline=dqn@sticky=0.25"]) == 0
  out = capsys.readouterr().out
  assert "dqn@sticky=0.0 " in out and "dqn@sticky=0.25 " in out
  assert "differ in sticky: 0.0, 0.25" in out
  assert "atari:Pooyan has no human's score" in out
  assert report.main(["out", "--baseline=dqn@sticky=0.3"]) == 2
  assert "dqn@sticky=0.25" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_of_six_games(tmp_path, monkeypatch, capsys):
  pytest.importorskip("ale_py")
  monkeypatch.chdir(tmp_path)
  small = "@hidden_sizes=8@replay_capacity=1000@min_replay_size=100@batch_size=2"
  small += "@updates_per_step=0.02"
  argv = [f"--agents=double_dqn{small},rainbow_ez{small}", "--workers=1"]
  argv += ["--envs=atari57_hard_exploration/max_frames=400", "--steps=150"]
  argv += ["--eval_every=75", "--eval_episodes=1", "--output=out"]
  assert sweep.main(argv) == 0
  paths = [*tmp_path.glob("out/*/*/seed0/config.json")]
  envs = [json.loads(path.read_text())["env"] for path in paths]
  assert (
    len(envs) == 12 and sum("life_loss=true,max_frames=400" in x for x in envs) == 6
  )
  capsys.readouterr()
  assert report.main(["out"]) == 0
  out = capsys.readouterr().out
  for agent in ("double_dqn", "rainbow_ez"):
    assert len(re.findall(rf"{agent} +6 games +-?\d", out)) == 5
  pictures = {path.name for path in (tmp_path / "out/report").glob("*.png")}
  assert pictures == {
    *(f"atari57_{name}.png" for name in ("median", "mean", "human_gap")),
    *(f"improvement_{name}_rainbow_ez.png" for name in ("final", "average")),
    *(f"return_{_env(g)}.png".replace(":", "_") for g in atari57.HARD_EXPLORATION),
  }
