"""The command `sweep`, and `--seeds`: their runs are those of `run`."""

import csv
import json
import pathlib
import shlex

import pytest

from explorax.experiments import run, sweep

# No update happens, so that little is compiled.
DQN = "dqn@hidden_sizes=8@min_replay_size=1000"
LOG = "bsuite/bsuite_id_-_catch-0.csv"


def _ends() -> dict[str, int]:
  """Directory of a finished run → when it ended."""
  paths = [*pathlib.Path("out").rglob("seed*/summary.json")]
  assert {json.loads(path.read_text())["status"] for path in paths} == {"finished"}
  return {str(path.parent): path.stat().st_mtime_ns for path in paths}


def test_runs_are_kept_and_added_to(agents, capsys):
  argv = [f"--agents={agents}:Random", "--sweep=bandit/0,catch/0", "--episodes=3"]
  argv += ["--workers=1", "--output=out"]
  assert sweep.main(argv) == 0
  out = capsys.readouterr().out
  assert "training at step 3" in out and "1 of 20" in out
  before = _ends()
  assert len(before) == 2
  assert sweep.main([*argv, "--seeds=2"]) == 0
  assert len(_ends()) == 4 and before.items() <= _ends().items()
  (folder,) = pathlib.Path("out").glob("*/bsuite_catch_0")
  assert json.loads((folder / "summary.json").read_text())["num_seeds"] == 2
  # Each is the run of the command in its config.json.
  command = json.loads((folder / "seed1/config.json").read_text())["command"]
  assert run.main([*shlex.split(command)[3:], "--output=again"]) == 0
  rows = (folder / "seed1" / LOG).read_text()
  assert rows.count("\n") == 4 and rows == pathlib.Path("again", LOG).read_text()


def test_runs_are_extended(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  argv = [f"--agents={DQN}", "--sweep=catch/0", "--workers=1", "--eval_episodes=0"]
  for episodes in (2, 3):
    assert sweep.main([*argv, f"--episodes={episodes}"]) == 0
    rows = pathlib.Path("sweep", DQN, "bsuite_catch_0/seed0", LOG).read_text()
    assert rows.count("\n") == 1 + episodes


def test_seeds_of_a_command_are_runs_of_their_own(agents):
  argv = [f"--agent={agents}:Random", "--env=bsuite:catch/0", "--episodes=4"]
  together = [*argv, "--workers=1", "--seeds=2", "--seed=3", "--output=out"]
  assert run.main(together) == 0
  assert run.main([*argv, "--seed=4", "--output=alone"]) == 0
  out, alone = pathlib.Path("out"), pathlib.Path("alone")
  assert (out / "seed4" / LOG).read_text() == (alone / LOG).read_text()
  assert json.loads((out / "config.json").read_text())["num_seeds"] == 2
  summary = json.loads((out / "summary.json").read_text())
  assert summary["seeds"].keys() == {"3", "4"}
  # The same command again computes nothing.
  before = _ends()
  assert run.main(together) == 0 and _ends() == before


def test_a_failed_run_stops_no_others(agents, capsys):
  names = f"--agents={agents}:Broken,{agents}:Random"
  argv = [names, "--sweep=catch/0", "--seeds=2", "--episodes=5", "--workers=1"]
  assert sweep.main(argv) == 1
  err = capsys.readouterr().err
  assert "seed1 failed:" in err and "it broke" in err
  failures = pathlib.Path("sweep").rglob("error.txt")
  assert all("Traceback" in failure.read_text() for failure in failures)
  paths = sorted(pathlib.Path("sweep").glob("*/*/seed*/summary.json"))
  statuses = [json.loads(path.read_text())["status"] for path in paths]
  assert statuses == ["failed", "failed", "finished", "finished"]


def test_a_tuning_names_the_best_settings(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("grid.flags").write_text(
    "--set=dqn.exploration.epsilon=0.0,1.0\n--set=qex.beta=1,2\n"
  )
  argv = ["--agents=dqn", "--envs=jax:chain/4", "--steps=60", "--output=out"]
  argv += ["--workers=1", "--flagfile=grid.flags", "--set=hidden_sizes=8"]
  argv += ["--set=min_replay_size=1000", "--eval_episodes=0"]
  assert sweep.main(argv) == 0
  out = capsys.readouterr().out
  assert {pathlib.Path(path).name for path in _ends()} == {"seed1000000"}
  with open("out/tuning.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert len(rows) == 2 and float(rows[0]["mean"]) >= float(rows[1]["mean"])
  assert f"best: --agent=dqn {rows[0]['settings']}" in out


@pytest.mark.parametrize(
  ("argv", "named"),
  [
    (("--sweep=catch/0",), "--agents"),
    (("--agents=dqm", "--sweep=catch/0"), "dqn"),
    (("--agents=dqn", "--sweep=catch/0", "--score=return"), "--score"),
    (("--agents=dqn", "--sweep=catch/0", "--runner=device"), "a Catch"),
    (("--agents=dqn", "--envs=atari:Pnog,atari:Pong", "--steps=9"), "mean Pong"),
    (("--agents=m:f", "--envs=jax:deep_sea/4", "--steps=9"), "m:f"),
  ],
)
def test_bad_input_is_one_line_that_names_it(
  tmp_path, monkeypatch, capsys, argv, named
):
  monkeypatch.chdir(tmp_path)
  assert sweep.main(argv) == 2
  err = capsys.readouterr().err
  assert named in err and err.startswith("explorax: ") and err.count("\n") == 1
  assert not [*tmp_path.iterdir()]
