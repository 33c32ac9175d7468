"""The report of runs on bsuite."""

import json
import re

import numpy as np
import pytest

from explorax.experiments import report
from explorax.experiments.reports import bsuite, page

pytest.importorskip("matplotlib")
AGENTS = ("bootstrapped_dqn", "tdu", "my_agents:make<b>")
SHOWN = ("catch", "catch_noise", "deep_sea", "deep_sea_stochastic", "memory_len")


def _worse(log: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
  """The log with regrets that differ from seed to seed."""
  factors = {"total_regret": 1 - 0.1 * seed, "total_perfect": 1 - 0.2 * seed}
  return log | {name: log[name] * x for name, x in factors.items() if name in log}


@pytest.fixture(scope="module")
def made(logs, write_sweep, tmp_path_factory):
  """The logs of a sweep, and the folder of the report that is made of it."""
  done = {
    (agent, bsuite_id, seed): _worse(log, seed)
    for agent in AGENTS
    for experiment in SHOWN
    for bsuite_id, log in logs["long"][experiment].items()
    for seed in (0, 1, 2)
    if (agent, seed) != (AGENTS[2], 2) and (agent, experiment) != (AGENTS[1], "catch")
  }
  path = write_sweep(tmp_path_factory.mktemp("sweep") / "out", done)
  assert report.main([str(path)]) == 0
  return done, path / "report"


def test_the_page_needs_nothing_but_itself(made):
  text = (made[1] / "report.html").read_text(encoding="utf-8")
  pictures = {path.name for path in made[1].glob("*.png")}
  assert len(re.findall('src="data:image/png;base64,', text)) == len(pictures) == 3
  assert not re.findall('(?:src|href)="(?!data:)', text) and "<script" not in text
  assert "my_agents:make&lt;b&gt;" in text and "my_agents:make<b>" not in text
  assert "<table>" in text and "<strong>Scores by experiment</strong>" in text


def test_a_table_has_the_scores(made, read_tables):
  done, folder = made
  rows, scores = read_tables(folder)["Scores by experiment"], bsuite.compute(done)
  assert len(rows) == 14  # All but TDU's of catch.
  for row in rows:
    score = scores[row["experiment"]][row["agent"]]
    assert (row["score"], row["95 % interval"]) == page.cells(score.mean)
    assert row["seeds"] == str(len(score.seeds))
    assert row["ids"].startswith(f"{len(score.ids)} of ")


def test_a_run_that_is_not_finished_has_no_score(
  logs, write_sweep, tmp_path, read_tables, capsys
):
  done = {("dqn", f"catch/{i}", 0): logs["long"]["catch"][f"catch/{i}"] for i in (0, 3)}
  path = write_sweep(tmp_path / "out", done)
  run = path / "dqn/catch-0/seed0"
  (run / "summary.json").write_text(json.dumps({"status": "interrupted"}))
  assert report.main([str(path)]) == 0
  assert "dqn/catch-0/seed0 is interrupted." in capsys.readouterr().out
  assert read_tables(path / "report")["Scores by experiment"][0]["ids"] == "1 of 20"
