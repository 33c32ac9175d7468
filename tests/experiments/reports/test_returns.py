"""The report of runs that the recorder wrote: their returns, labels and refusals."""

import re

import numpy as np
import pytest

from explorax.experiments import report

pytest.importorskip("matplotlib")


def _page(path="runs/report"):
  with open(f"{path}/report.md", encoding="utf-8") as file:
    return file.read()


def _returns(tables, env):
  """Agent → its return in an environment, and how often it was run."""
  (rows,) = (rows for title, rows in tables.items() if title.startswith(f"{env}, re"))
  return {row["agent"]: (row["return"], row["seeds"]) for row in rows}


def _titles(tables, *envs):
  return [
    next(title for title in tables if title.startswith(f"{env}, return"))
    for env in envs
  ]


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
  title = (
    "gym:CartPole-v1, return of training at step 400 (interquartile mean over seeds)"
  )
  assert title in out
  a, b = tables[title]
  assert (a["return"], a["seeds"], b["return"]) == ("**3.000**", "5", "-0.667")
  assert re.fullmatch(r"\[1\.\d+, 7\.\d+\]", a["95 % interval"])
  assert b["95 % interval"] == "[-1.000, 0.000]"
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
  assert {a: n for a, (_, n) in cartpole.items()} == dict.fromkeys(
    ("dqn@n_step=1", "dqn@n_step=3"), "2"
  )
  assert y["dqn@n_step=1"][1] == "2" and y["tdu"] == ("5.000", "1")
  assert "runs/copy is left out: runs/1-1 is the same run" in out
  (y,) = _titles(tables, "x:y")
  assert "at step 90" in y  # Where the shortest run ends.
  assert "## All environments together" in _page("page")


def _no_episode(path):
  file = path / "metrics.csv"
  file.write_text(file.read_text().splitlines()[0] + "\n")


def _bad_number(path):
  file = path / "metrics.csv"
  file.write_text(file.read_text().replace("10", "ten"))


@pytest.mark.parametrize(
  ("argv", "named"), [([], "no directory"), (["rnus"], "runs"), (["empty"], "no run")]
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
  cartpole, y, z = _titles(tables, "gym:CartPole-v1", "x:y", "x:z")
  assert "of evaluations at step 402" in cartpole
  assert "of evaluations at step 401" in y and "of training at step 400" in z
  for env in ("gym:CartPole-v1", "x:y"):
    found = {agent: value for agent, (value, _) in _returns(tables, env).items()}
    assert found == {"dqn": "3.000", "tdu": "**7.000**"}


def test_a_run_without_an_ended_episode_is_compared_by_its_evaluation(
  write_run, tmp_path, read_tables, capsys
):
  for agent, value, returns in (("dqn", 3.0, []), ("tdu", 7.0, None)):
    of_agent = {"returns": returns, "evaluations": {400: [value, value + 1]}}
    write_run(f"runs/{agent}", agent, **of_agent)
    write_run(f"runs/{agent}_y", agent, "x:y", returns=[], evaluations={90: [value]})
    # Only one of them has an evaluation.
    of_agent["evaluations"] = None if agent == "tdu" else {400: [value]}
    write_run(f"runs/{agent}_z", agent, "x:z", **of_agent)
  assert report.main(["runs"]) == 0
  tables = read_tables(tmp_path / "runs/report")
  cartpole, y = _titles(tables, "gym:CartPole-v1", "x:y")
  assert "of evaluations at step 400" in cartpole and "at step 90" in y
  for env, values in (
    ("gym:CartPole-v1", ("3.500", "7.500")),
    ("x:y", ("3.000", "7.000")),
  ):
    found = _returns(tables, env)
    assert (found["dqn"][0], found["tdu"][0]) == values
  assert [*_returns(tables, "x:z")] == ["tdu"]
  (remark,) = re.findall(r"runs/\S+ is left out: .*", capsys.readouterr().out)
  assert remark.startswith("runs/dqn_z") and "x:z" in remark
  rows = {row["run"]: row for row in tables["Every run of this report"]}
  assert (rows["runs/dqn"]["episodes"], rows["runs/dqn"]["steps"]) == ("0", "400")


def _no_number(path):
  file = path / "metrics.csv"
  rows = [row.split(",") for row in file.read_text().splitlines()]
  rows[2][rows[0].index("episode_return")] = "nan"
  file.write_text("\n".join(",".join(row) for row in rows) + "\n")


def _bad_evaluation(path):
  (path / "evaluation.csv").write_text("env_steps,episode_return\n10,nan\n")


@pytest.mark.parametrize(
  "damage",
  [
    _no_episode,
    _bad_number,
    _no_number,
    _bad_evaluation,
    lambda path: (path / "metrics.csv").write_text("a,b\n1,2\n"),
    lambda path: (path / "config.json").write_text("{}"),
    lambda path: (path / "config.json").unlink(),
  ],
)
def test_one_bad_run_is_a_line_and_a_gap(write_run, capsys, damage):
  for seed in range(3):
    path = write_run(f"runs/a{seed}", seed=seed)
  damage(path)
  assert report.main(["runs"]) == 0
  out, err = capsys.readouterr()
  (line,) = [line for line in out.splitlines() if "left out" in line]
  assert line.startswith("runs/a2 is left out: ") and err == ""
  assert "runs/a2 is left out" in _page()
