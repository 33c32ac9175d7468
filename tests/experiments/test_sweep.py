"""The command `sweep`: its runs are those of `run`."""

import csv
import json
import pathlib
import shlex

import pytest

from explorax.experiments import run, sweep

# No update happens, so that little is compiled.
DQN = "dqn@hidden_sizes=8@min_replay_size=1000"
AGENTS = """
import numpy as np


class Random:
  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values
    self.seed = seed

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    pass


class Broken(Random):
  def update(self, timestep, action, new_timestep):
    if self.seed == 1:
      raise RuntimeError("it broke")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
  """A module of agents in the current directory."""
  name = f"agents_of_{tmp_path.name}"
  (tmp_path / f"{name}.py").write_text(AGENTS)
  monkeypatch.chdir(tmp_path)
  return name


@pytest.fixture
def random_sweep(module):
  """`main` in this process with an agent that acts at random."""
  agents = f"--agents={module}:Random"
  return lambda *argv: sweep.main([agents, *argv, "--workers=1", "--output=out"])


def _runs(folder: str = "out") -> list[str]:
  """The directories of the finished runs."""
  paths = [path.parent for path in pathlib.Path(folder).glob("*/*/seed*/summary.json")]
  statuses = [
    json.loads((path / "summary.json").read_text())["status"] for path in paths
  ]
  assert set(statuses) <= {"finished"}
  return sorted(str(path.relative_to(folder)) for path in paths)


def _numbers(path: pathlib.Path) -> list[dict[str, str]]:
  """The rows of a `metrics.csv` without what depends on the clock."""
  with open(path / "metrics.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  return [
    {k: v for k, v in row.items() if k not in ("steps_per_second", "wall_seconds")}
    for row in rows
  ]


def test_runs_are_kept_and_added_to(random_sweep, capsys):
  argv = ("--sweep=bandit/0,bandit/3", "--episodes=3")
  assert random_sweep(*argv) == 0
  out = capsys.readouterr().out
  assert "training at step 3" in out and "2 of 20" in out
  runs = _runs()
  assert len(runs) == 2
  before = {path: pathlib.Path("out", path).stat().st_mtime_ns for path in runs}
  assert random_sweep(*argv, "--seeds=2") == 0
  assert len(_runs()) == 4
  assert before == {p: pathlib.Path("out", p).stat().st_mtime_ns for p in runs}


def test_each_run_is_the_run_of_that_command_and_is_extended(module):
  argv = ["--seeds=2", "--workers=1", "--eval_episodes=1"]
  dqn = [f"--agents={DQN}", "--sweep=catch/0", *argv]
  assert sweep.main([*dqn, "--episodes=2"]) == 0
  assert sweep.main([*dqn, "--episodes=3"]) == 0
  alone = ["--agent=dqn", "--set=hidden_sizes=8", "--set=min_replay_size=1000"]
  alone += ["--env=bsuite:catch/0", "--seed=1", "--eval_episodes=1", "--output=alone"]
  assert run.main([*alone, "--episodes=2"]) == 0
  assert run.main([*alone, "--episodes=3"]) == 0
  folder = pathlib.Path("sweep", DQN, "bsuite_catch_0")
  rows = _numbers(folder / "seed1")
  assert len(rows) == 3 and rows == _numbers(pathlib.Path("alone"))
  command = json.loads((folder / "seed1/config.json").read_text())["command"]
  assert run.main([*shlex.split(command)[3:], "--output=again"]) == 0
  assert rows == _numbers(pathlib.Path("again"))
  assert json.loads((folder / "summary.json").read_text())["num_seeds"] == 2


def test_a_failed_run_stops_no_others(module, capsys):
  agents = f"--agents={module}:Random,{module}:Broken"
  argv = [agents, "--sweep=catch/0", "--seeds=2", "--episodes=5", "--workers=1"]
  assert sweep.main(argv) == 1
  err = capsys.readouterr().err
  assert "seed1 failed:" in err and "it broke" in err
  (failure,) = pathlib.Path("sweep").rglob("error.txt")
  assert failure.parts[-2] == "seed1" and "Traceback" in failure.read_text()
  paths = pathlib.Path("sweep").glob("*/*/seed*/summary.json")
  statuses = [json.loads(path.read_text())["status"] for path in paths]
  assert sorted(statuses) == ["failed", "finished", "finished", "finished"]


def test_a_tuning_names_the_best_settings(module, capsys):
  pathlib.Path("grid.flags").write_text(
    "--set=dqn.exploration.epsilon=0.0,1.0\n--set=qex.beta=1,2\n"
  )
  argv = ["--agents=dqn", "--envs=jax:chain/4", "--steps=60", "--seeds=2"]
  argv += ["--workers=1", "--flagfile=grid.flags", "--set=hidden_sizes=8"]
  argv += ["--set=min_replay_size=1000", "--score=return"]
  assert sweep.main(argv) == 0
  out = capsys.readouterr().out
  seeds = {pathlib.Path(path).name for path in _runs("sweep")}
  assert seeds == {"seed1000000", "seed1000001"}
  with open("sweep/tuning.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert len(rows) == 2 and float(rows[0]["mean"]) >= float(rows[1]["mean"])
  assert f"best: --agent=dqn {rows[0]['settings']}" in out


@pytest.mark.parametrize(
  ("argv", "named"),
  [
    (("--sweep=catch/0",), "--agents"),
    (("--agents=dqn",), "--sweep"),
    (("--agents=dqm", "--sweep=catch/0"), "dqn"),
    (("--agents=dqn@beta=x", "--sweep=catch/0"), "beta"),
    (("--agents=dqn", "--sweep=catch/0", "--score=return"), "--score"),
    (("--agents=dqn", "--sweep=catch/0", "--set=qex.beta=1,2"), "qex"),
    (("--agents=dqn", "--sweep=catch/0", "--runner=device"), "bsuite:catch/0"),
    (("--agents=dqn", "--envs=jax:deep_see/4", "--steps=9"), "jax:deep_see/4"),
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
