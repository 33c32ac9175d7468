"""`--seeds` as separate runs: each seed is the run that it would be alone."""

import json
import pathlib

import pytest

from explorax.experiments import run

SEEDS = ("--seeds=2", "--seed=3")


@pytest.fixture
def command(agents):
  """(class of the agent) → the arguments of a command."""
  more = ("--env=bsuite:catch/0", "--workers=1", "--output=out")
  return lambda kind="Random": (f"--agent={agents}:{kind}", *more)


def _json(path):
  return json.loads(pathlib.Path(path).read_text())


def test_each_seed_is_a_run_of_its_own(command, capsys):
  argv = [*command(), *SEEDS, "--episodes=4"]
  assert run.main(argv) == 0
  assert "2 seeds, 3 to 4" in capsys.readouterr().out
  assert run.main([*command()[:2], "--seed=4", "--episodes=4", "--output=alone"]) == 0
  name = "bsuite/bsuite_id_-_catch-0.csv"
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
  # The same command again computes nothing.
  before = pathlib.Path("out/seed3/summary.json").stat().st_mtime_ns
  assert run.main(argv) == 0
  assert pathlib.Path("out/seed3/summary.json").stat().st_mtime_ns == before


def test_a_failed_seed_is_reported(command, capsys):
  assert run.main([*command("Broken"), *SEEDS, "--episodes=4"]) == 1
  err = capsys.readouterr().err
  assert "seed3 failed: RuntimeError: it broke" in err and "2 runs missing" in err


def test_a_stop_ends_the_seed_with_its_files(interrupted, command, capsys):
  assert interrupted(40, *command(), *SEEDS, "--episodes=1000") == 143
  assert _json("out/seed3/summary.json")["status"] == "interrupted"
  assert not pathlib.Path("out/summary.json").exists()
  assert "2 runs missing" in capsys.readouterr().err


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
