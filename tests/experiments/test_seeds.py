"""`--seeds` as separate runs: each seed is the run that it would be alone."""

import json
import pathlib

import pytest

from explorax.experiments import run

BASE = ("--agent=fake", "--env=bsuite:catch/0", "--workers=1", "--output=out")
SEEDS = ("--seeds=2", "--seed=3")


with_stand_ins = pytest.mark.usefixtures("stand_ins")


def _json(path):
  return json.loads(pathlib.Path(path).read_text())


@with_stand_ins
def test_each_seed_is_a_run_of_its_own(capsys):
  assert run.main([*BASE, *SEEDS, "--episodes=4"]) == 0
  out = capsys.readouterr().out
  for told in (
    "fake on bsuite:catch/0, 2 seeds, 3 to 4",
    "mean over seeds of the last 4 episodes: 2.5",
    "python -m explorax.experiments.report out",
  ):
    assert told in out, out
  alone = [*BASE[:2], "--seed=4", "--episodes=4", "--output=alone"]
  assert run.main(alone) == 0
  for name in ("metrics.csv", "bsuite/bsuite_id_-_catch-0.csv"):
    assert (
      pathlib.Path("out/seed4", name).read_text()
      == pathlib.Path("alone", name).read_text()
    )
  names = {path.name for path in pathlib.Path("out").iterdir()}
  assert {"config.json", "summary.json", "seed3", "seed4"} <= names
  assert _json("out/config.json")["num_seeds"] == 2
  one = _json("out/seed4/config.json")
  assert (one["seed"], one["num_seeds"]) == (4, 1)
  assert _json("out/summary.json")["seeds"].keys() == {"3", "4"}
  # The same command again computes nothing, and tells the results.
  before = pathlib.Path("out/seed3/summary.json").stat().st_mtime_ns
  assert run.main([*BASE, *SEEDS, "--episodes=4"]) == 0
  assert pathlib.Path("out/seed3/summary.json").stat().st_mtime_ns == before
  assert "the last 4 episodes: 2.5" in capsys.readouterr().out


@with_stand_ins
def test_a_failed_seed_is_told_and_the_other_settings_refused(capsys):
  assert run.main([*BASE, *SEEDS, "--episodes=4", "--set=crash_at_episode=2"]) == 1
  err = capsys.readouterr().err
  assert "seed3 failed: RuntimeError: the environment broke" in err
  assert "2 runs failed" in err
  assert run.main([*BASE, *SEEDS, "--episodes=4"]) == 2
  err = capsys.readouterr().err
  assert "out/seed3" in err and "config.crash_at_episode" in err
  assert err.count("\n") == 1


@with_stand_ins
def test_a_stop_ends_the_seed_with_its_files(interrupted, capsys):
  assert interrupted(40, *BASE, *SEEDS, "--episodes=1000") == 143
  assert _json("out/seed3/summary.json")["status"] == "interrupted"
  assert not pathlib.Path("out/summary.json").exists()
  assert "2 runs left" in capsys.readouterr().err


@with_stand_ins
@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--workers=2"], "--workers=2"),
    (["--seeds=2", "--env=bsuite:ctach/0"], "did you mean"),
    (["--seeds=2", "--set=nope=1"], "nope"),
  ],
)
def test_refusals_are_one_sentence_and_leave_nothing(argv, says, capsys):
  base = ["--agent=fake", "--env=bsuite:catch/0", "--output=out"]
  assert run.main([*base, *argv]) == 2
  err = capsys.readouterr().err
  assert says in err and err.count("\n") == 1
  assert not pathlib.Path("out").exists()


def test_finished_seeds_are_extended(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  base = ["--agent=dqn", "--env=jax:deep_sea/4", "--seeds=2", "--workers=1"]
  base += ["--output=out", "--set=hidden_sizes=8", "--set=min_replay_size=1000"]
  assert run.main([*base, "--episodes=2"]) == 0
  rows = pathlib.Path("out/seed1/metrics.csv").read_text()
  assert run.main([*base, "--episodes=3"]) == 0, capsys.readouterr().err
  extended = pathlib.Path("out/seed1/metrics.csv").read_text()
  assert extended.startswith(rows) and extended.count("\n") == rows.count("\n") + 1
  assert _json("out/summary.json")["seeds"]["1"]["episodes"] == 3
  assert _json("out/config.json")["episodes"] == 3
