"""The report of runs that the recorder wrote: their returns, labels and refusals."""

import pathlib
import re

import numpy as np
import pytest

from explorax.experiments import report

pytest.importorskip("matplotlib")


def _returns(tables, env):
  """Agent → its return in an environment, how often it was run, and of what it is."""
  return {
    row["agent"]: (row["return"], row["seeds"], row["of"])
    for row in tables["Returns at the end of runs"]
    if row["environment"] == env
  }


def test_runs_are_grouped_and_scored_at_their_common_end(
  write_run, tmp_path, read_tables, capsys
):
  ends = {"a": (1.0, 2.0, 3.0, 4.0, 9.0), "b": (-1.0, -1.0, 0.0)}
  for name, values in ends.items():
    for seed, value in enumerate(values):
      # The last tenth of 40 episodes are four.
      returns = np.concatenate([np.zeros(36), np.full(4, value)])
      write_run(f"runs/{name}/{seed}", name, seed=seed, returns=returns)
  assert report.main(["runs"]) == 0
  out = capsys.readouterr().out
  assert out.rstrip().endswith("runs/report/report.html")
  tables = read_tables(tmp_path / "runs/report")
  assert "Returns at the end of runs" in out
  a, b = tables["Returns at the end of runs"]
  assert (a["return"], a["seeds"], b["return"]) == ("3", "5", "-0.6667")
  assert a["of"] == "training at step 400"
  assert re.fullmatch(r"\[1\.\d+, 7\.\d+\]", a["95 % interval"])
  assert b["95 % interval"] == "[-1, 0]"
  (pair,) = tables["Pairs of agents, the better one first"]
  assert (pair["X"], pair["P(X > Y)"]) == ("a", "1.00")
  assert pair["95 % interval"] == "[1.00, 1.00]"
  assert (tmp_path / "runs/report/return_gym_CartPole-v1.png").exists()


def test_labels_of_agents_have_the_settings_in_which_they_differ(
  write_run, tmp_path, read_tables, capsys
):
  for seed in (0, 1):
    for n_step in (1, 3):
      # The same in all runs, so that it is not in the name.
      given = {"n_step": n_step, "learning_rate": 0.1}
      write_run(f"runs/{n_step}-{seed}", seed=seed, **given)
    write_run(f"runs/other{seed}", env="x:y", seed=seed, n_step=1, learning_rate=0.2)
  write_run("runs/copy", seed=1, n_step=1, learning_rate=0.1, returns=[1.0])
  write_run("runs/short", "tdu", "x:y", returns=[5.0] * 9)
  assert report.main(["runs", "runs/1-0", "--output=page"]) == 0
  out = capsys.readouterr().out
  tables = read_tables(tmp_path / "page")
  cartpole, y = _returns(tables, "gym:CartPole-v1"), _returns(tables, "x:y")
  assert {a: n for a, (_, n, _) in cartpole.items()} == dict.fromkeys(
    ("dqn@n_step=1", "dqn@n_step=3"), "2"
  )
  assert y["dqn@n_step=1"][1] == "2"
  # Where the shortest run ends.
  assert y["tdu"] == ("5", "1", "training at step 90")
  assert "runs/copy is left out: runs/1-1 is the same run" in out


@pytest.mark.parametrize(
  ("argv", "named"), [([], "no directory"), (["rnus"], "rnus"), (["empty"], "no run")]
)
def test_no_runs_are_refused_in_a_line(write_run, tmp_path, capsys, argv, named):
  write_run("runs/a")
  (tmp_path / "empty").mkdir()
  assert report.main(argv) == 2
  out, err = capsys.readouterr()
  assert out == "" and named in err and err.count("\n") == 1
  assert not [*tmp_path.rglob("report")]


def test_evaluations_are_compared_where_all_runs_have_them(
  write_run, tmp_path, read_tables
):
  for seed in range(2):
    for agent, value in (("dqn", 3.0), ("tdu", 7.0)):
      write_run(f"runs/{agent}{seed}", agent, seed=seed, evaluations={402: [value] * 2})
      several = {200: [0.0], 401 + seed: [value]}
      write_run(f"runs/{agent}_y{seed}", agent, "x:y", seed, evaluations=several)
      partly = None if agent == "tdu" else {400: [value]}
      write_run(f"runs/{agent}_z{seed}", agent, "x:z", seed, evaluations=partly)
  assert report.main(["runs", "--output=page"]) == 0
  tables = read_tables(tmp_path / "page")
  for env, of in (
    ("gym:CartPole-v1", "evaluations at step 402"),
    ("x:y", "evaluations at step 401"),
  ):
    expected = {"dqn": ("3", "2", of), "tdu": ("7", "2", of)}
    assert _returns(tables, env) == expected
  assert _returns(tables, "x:z")["dqn"][2] == "training at step 400"


def test_bad_runs_are_a_line_each_and_a_gap(write_run, capsys):
  damages = [
    lambda path: (path / "metrics.csv").write_text("a,b\n1,2\n"),
    lambda path: (path / "config.json").write_text("{}"),
    lambda path: (path / "config.json").unlink(),
  ]
  write_run("runs/good")
  for seed, damage in enumerate(damages):
    damage(write_run(f"runs/a{seed}", seed=seed))
  for seed, returns in ((3, []), (4, [1.0, np.nan])):
    write_run(f"runs/a{seed}", seed=seed, returns=returns)
  assert report.main(["runs"]) == 0
  out, err = capsys.readouterr()
  lines = [line for line in out.splitlines() if "left out" in line]
  assert len(lines) == 5 and err == ""
  text = pathlib.Path("runs/report/report.md").read_text(encoding="utf-8")
  for seed, line in enumerate(lines):
    assert line.startswith(f"runs/a{seed} is left out: ") and line in text
