"""Sweeps over environments of any kind, in this process."""

import json
import pathlib
import re

import pytest

from explorax.experiments import sweep
from explorax.experiments.sweeps import environments

# No update happens, so that little is compiled.
AGENT = "dqn@hidden_sizes=8@min_replay_size=1000"
BASE = ("--workers=1", "--output=out")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def test_runs_are_made_told_and_extended(capsys):
  argv = [*BASE, f"--agents={AGENT}", "--envs=jax:deep_sea/4,bsuite:catch/0"]
  assert sweep.main([*argv, "--seeds=2", "--episodes=2"]) == 0
  out = capsys.readouterr().out
  assert "4 runs (1 agent, 2 environments, 2 seeds), into out" in out
  assert "jax:deep_sea/4, return at step 8 " in out and "dqn   2 seeds" in out
  assert "Intervals of two seeds say little: dqn." in out
  assert "python -m explorax.experiments.compare out" in out
  runs = sorted(pathlib.Path("out/runs").glob("*/seed*"))
  assert len(runs) == 4
  before = {path: (path / "metrics.csv").read_text() for path in runs}
  record = json.loads((runs[-1] / "config.json").read_text())
  assert (record["env"], record["seed"]) == ("jax:deep_sea/4", 1)
  assert record["settings"] == ["hidden_sizes=8", "min_replay_size=1000"]
  assert sweep.main([*argv, "--seeds=2", "--episodes=3"]) == 0
  for path, rows in before.items():
    extended = (path / "metrics.csv").read_text()
    assert extended.count("\n") == rows.count("\n") + 1
  # A shorter sweep is another one.
  assert sweep.main([*argv, "--seeds=2", "--episodes=1"]) == 1
  err = capsys.readouterr().err
  assert "already holds a run with other settings: episodes is 3 there" in err


def test_commas_in_profiles_separate_nothing():
  text = "atari:Pong/ngu,meta_episode=3, gym:A-v1,my_module.sub:make,gym:A-v1"
  assert environments.split(text) == [
    "atari:Pong/ngu,meta_episode=3",
    "gym:A-v1",
    "my_module.sub:make",
  ]


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--envs=jax:deep_see/4", "--steps=9"], "dqn on jax:deep_see/4: .*did you mean"),
    (["--envs=jax:deep_sea/4"], "the run has no limit: give --episodes or --steps"),
    (["--envs=jax:deep_sea/4", "--agents=dqqn", "--steps=9"], "Did you mean dqn"),
    (["--envs=jax:deep_sea/4", "--agents=m:f", "--steps=9"], "'m:f'"),
    (["--envs=jax:deep_sea/4", "--sweep=catch/0"], "leave out --sweep or --envs"),
    (["--envs=jax:deep_sea/4", "--agents=dqn@n_stepp=1", "--steps=9"], "n_step"),
    (["--sweep=catch/0", "--steps=9"], "--steps=9 is for --envs"),
  ],
)
def test_refusals_are_one_sentence(argv, says, capsys):
  assert sweep.main(["--agents=dqn", *BASE, *argv]) == 2
  out, err = capsys.readouterr()
  assert out == "" and err.count("\n") == 1, err
  assert re.search(says, err), err
