"""The report of runs on bsuite, and what it refuses."""

import json
import pathlib
import re
import shutil

import numpy as np
import pytest

from explorax.experiments import report
from explorax.experiments.reports import bsuite_scores

pytest.importorskip("matplotlib")
AGENTS = ("bootstrapped_dqn", "tdu", "my_agents:make<b>")
SHOWN = ("catch", "catch_noise", "deep_sea", "deep_sea_stochastic", "memory_len")
MISSING = "Missing: asked for by a sweep, and not finished"


def _worse(log: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
  """The log with regrets that differ from seed to seed."""
  factors = {"total_regret": 1 - 0.1 * seed, "total_perfect": 1 - 0.2 * seed}
  return log | {name: log[name] * x for name, x in factors.items() if name in log}


@pytest.fixture(scope="module")
def made(logs, write_sweep, tmp_path_factory):
  """A sweep, what its logs are, and the folder of the report that is made of it."""
  done = {
    (agent, bsuite_id, seed): _worse(log, seed)
    for agent in AGENTS
    for experiment in SHOWN
    for bsuite_id, log in logs["long"][experiment].items()
    for seed in (0, 1, 2)
    if (agent, seed) != (AGENTS[2], 2) and (agent, experiment) != (AGENTS[1], "catch")
  }
  missing = [(agent, "mnist/0", seed) for agent in AGENTS for seed in (0, 1)]
  path = tmp_path_factory.mktemp("sweep") / "out"
  write_sweep(path, done, missing=missing)
  assert report.main([str(path)]) == 0
  return path, done, path / "report"


def test_the_page_needs_nothing_but_itself(made):
  text = (made[2] / "report.html").read_text(encoding="utf-8")
  pictures = {path.name for path in made[2].glob("*.png")}
  assert len(re.findall('src="data:image/png;base64,', text)) == len(pictures) > 3
  assert not re.findall('(?:src|href)="(?!data:)', text) and "<script" not in text
  assert "my_agents:make&lt;b&gt;" in text and "my_agents:make<b>" not in text
  assert "<table>" in text and "<strong>Scores by experiment</strong>" in text


def test_scores_are_the_means_of_each_seeds_and_lie_in_their_intervals(
  made, read_tables
):
  _, done, path = made
  rows = {
    (row["agent"], row["experiment"]): row
    for row in read_tables(path)["Scores by experiment"]
  }
  assert (AGENTS[1], "catch") not in rows and len(rows) == 14
  for (agent, experiment), row in rows.items():
    values = []
    for seed in range(int(row["seeds"])):
      of_seed = {
        i: log
        for (a, i, s), log in done.items()
        if (a, s) == (agent, seed) and i.partition("/")[0] == experiment
      }
      values.append(bsuite_scores.score(experiment, of_seed))
    mean, low, high = (
      float(x) for x in re.findall(r"\d\.\d\d", row["score"] + row["95 % interval"])
    )
    np.testing.assert_allclose(mean, np.mean(values), atol=0.005)
    assert min(values) - 0.005 <= low <= mean <= high <= max(values) + 0.005
  assert rows["tdu", "deep_sea"]["ids"] == "7 of 21"


def test_it_says_what_is_missing_and_how_each_number_was_made(made, read_tables):
  path, done, folder = made
  tables, text = read_tables(folder), (folder / "report.md").read_text()
  assert f"{len(done):,} runs of" in text
  reasons = [(row["agent"], row["runs"], row["reason"]) for row in tables[MISSING]]
  assert reasons == [(agent, "2", "it has not been run yet") for agent in AGENTS]
  assert "python -m the.sweep --agents=…" in text and "0123abc" in text
  assert f"python -m explorax.experiments.report {path}" in text
  assert len(tables["Every run of this report"]) == len(done)


@pytest.fixture(scope="module")
def small(logs, write_sweep, tmp_path_factory):
  path = tmp_path_factory.mktemp("small") / "out"
  done = {("dqn", f"catch/{i}", 0): logs["long"]["catch"][f"catch/{i}"] for i in (0, 3)}
  return write_sweep(path, done)


FIRST = "dqn/catch-0/seed0"


def _unfinished(path: pathlib.Path) -> None:
  (path / FIRST / "summary.json").write_text(json.dumps({"status": "interrupted"}))


def _failed(path: pathlib.Path) -> None:
  (path / FIRST / "summary.json").write_text(json.dumps({"status": "failed"}))
  (path / FIRST / "error.txt").write_text("Traceback\nValueError: it broke\n")


@pytest.mark.parametrize(
  ("damage", "reason"),
  [
    (_unfinished, "interrupted"),
    (_failed, "ValueError: it broke"),
    (lambda path: shutil.rmtree(path / FIRST), "it has not been run yet"),
  ],
)
def test_runs_that_are_not_finished_are_listed_with_the_reason(
  small, tmp_path, read_tables, damage, reason
):
  path = shutil.copytree(small, tmp_path / "out")
  damage(path)
  assert report.main([str(path)]) == 0
  tables = read_tables(path / "report")
  (row,) = tables[MISSING]
  assert (row["environment"], row["reason"]) == ("bsuite:catch", reason)
  assert tables["Scores by experiment"][0]["ids"] == "1 of 20"


def _log(path):
  (file,) = (path / FIRST / "bsuite").iterdir()
  return file


@pytest.mark.parametrize(
  ("damage", "named"),
  [
    (lambda p: (p / "sweep.json").write_text("{"), "sweep.json"),
    (lambda p: _log(p).write_text("episode,steps\n1,9\n"), "total_regret"),
  ],
)
def test_what_cannot_be_reported_is_refused_in_a_line_that_names_it(
  small, tmp_path, capsys, damage, named
):
  path = shutil.copytree(small, tmp_path / "out")
  damage(path)
  assert report.main([str(path)]) == 2
  out, err = capsys.readouterr()
  assert out == "" and named in err
  assert err.startswith("explorax: ") and err.endswith(".\n") and err.count("\n") == 1
  assert not (path / "report").exists()
