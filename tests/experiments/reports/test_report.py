"""The report of runs on bsuite: its page and drawings, and what it refuses."""

import html.parser
import importlib.util
import json
import pathlib
import re
import shutil

import numpy as np
import pytest

from explorax.experiments import report
from explorax.experiments.reports import drawings, scores

needs_matplotlib = pytest.mark.skipif(
  importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)
AGENTS = ("bootstrapped_dqn", "tdu", "my_agents:make<b>")
SHOWN = ("catch", "catch_noise", "deep_sea", "deep_sea_stochastic", "memory_len")
VOID = {"meta", "link", "img", "wbr"}


class _Page(html.parser.HTMLParser):
  """The elements of a page; fails where tags are not closed in turn."""

  def __init__(self, text: str):
    super().__init__()
    self.text = text
    self.elements: list[tuple[str, dict[str, str]]] = []
    self.tables: dict[str, list[list[str]]] = {}
    self._open: list[str] = []
    self._table = ""
    self.feed(text)
    self.close()
    assert not self._open, self._open

  def handle_starttag(self, tag, attrs):
    attributes = {name: value or "" for name, value in attrs}
    self.elements.append((tag, attributes))
    if attributes.get("role") == "region":
      self._table = attributes["aria-label"]
      self.tables[self._table] = []
    if tag == "tr":
      self.tables[self._table].append([])
    if tag in ("td", "th"):
      self.tables[self._table][-1].append("")
    if tag not in VOID:
      self._open.append(tag)

  def handle_endtag(self, tag):
    assert self._open.pop() == tag, (tag, self._open)

  def handle_data(self, data):
    if {"td", "th"} & set(self._open):
      small = " | " if self._open[-1] == "small" else ""
      self.tables[self._table][-1][-1] += small + data

  def cell(self, table: str, row: str, column: str) -> str:
    rows = self.tables[table]
    (chosen,) = [r for r in rows if r[0].partition(" | ")[0] == row]
    return chosen[rows[0].index(column)]


def _worse(log: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
  """The log with regrets that differ from seed to seed."""
  factor = {"total_regret": 1 - 0.1 * seed, "total_perfect": 1 - 0.2 * seed}
  return {name: values * factor.get(name, 1.0) for name, values in log.items()}


@pytest.fixture(scope="module")
def made(logs, write_sweep, tmp_path_factory):
  """A sweep, what its logs are, and the page that the command makes of it."""
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
  text = (path / "report/report.html").read_text(encoding="utf-8")
  return path, done, _Page(text)


@needs_matplotlib
def test_the_page_needs_nothing_but_itself(made):
  _, _, page = made
  names = {tag for tag, _ in page.elements}
  assert not names & {"script", "iframe", "object", "video"}
  for tag, attributes in page.elements:
    for name in ("src", "href", "srcset", "action"):
      assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
  assert "url(" not in page.text and "@import" not in page.text
  anchors = {a["id"] for _, a in page.elements if "id" in a}
  links = [a["href"][1:] for tag, a in page.elements if tag == "a"]
  assert links and set(links) <= anchors


@needs_matplotlib
def test_scores_are_the_means_of_each_seeds_and_lie_in_their_intervals(made):
  _, done, page = made
  for agent in AGENTS:
    for experiment in SHOWN:
      each = []
      for seed in (0, 1, 2):
        own = {
          i: log
          for (a, i, s), log in done.items()
          if (a, s) == (agent, seed) and i.partition("/")[0] == experiment
        }
        each += [scores.score(experiment, own)] if own else []
      shown = page.cell("Scores by experiment", experiment, agent)
      if not each:
        assert shown == "" and (agent, experiment) == (AGENTS[1], "catch")
        continue
      numbers = [float(x) for x in re.findall(r"\d\.\d\d", shown)]
      np.testing.assert_allclose(numbers[0], np.mean(each), atol=0.005)
      assert min(each) - 0.005 <= numbers[1] <= numbers[0] <= numbers[2]
      assert numbers[2] <= max(each) + 0.005
  # The highest is not bold, since the intervals overlap.
  assert "0.40 [" in page.text and '<td class="number"><strong>' not in page.text


@needs_matplotlib
def test_it_says_what_is_missing_and_how_each_number_was_made(made):
  path, done, page = made
  assert f"{len(done):,} runs of" in page.text and "6 runs of a sweep" in page.text
  rows, x = page.tables["Missing runs"][1:], "bsuite:mnist"
  assert rows == [[x, agent, "2", "it has not been run yet"] for agent in AGENTS]
  assert "3 seeds, 7 of 21 ids" in page.cell("Scores by experiment", "deep_sea", "tdu")
  for words in (
    "python -m the.sweep --agents=…",
    f"python -m explorax.experiments.report {path}",
    "python 3.11.99, jax 9.8.7, commit 0123abc, on a machine",
  ):
    assert words in " ".join(page.text.split()), words
  formulas = {row[0]: row[1] for row in page.tables["Formulas"][1:]}
  assert list(formulas) == list(SHOWN)
  assert formulas["catch"] == "1 − average regret / 1.6, at least 0"
  assert "dm-reverb" not in page.text  # It was not installed.
  assert "my_agents:make<b>" not in page.text  # It is escaped.
  assert len(page.tables["The runs"]) == 1 + len(done)


@pytest.fixture(scope="module")
def small(logs, write_sweep, tmp_path_factory):
  path = tmp_path_factory.mktemp("small") / "out"
  done = {("dqn", f"catch/{i}", 0): logs["long"]["catch"][f"catch/{i}"] for i in (0, 3)}
  return write_sweep(path, done)


def _change(path: pathlib.Path, name: str, change) -> None:
  file = path / name
  content = json.loads(file.read_text())
  change(content)
  file.write_text(json.dumps(content))


FIRST = "dqn/catch-0/seed0"


def _unfinished(path):
  _change(path, f"{FIRST}/summary.json", lambda x: x.update(status="interrupted"))


@needs_matplotlib
@pytest.mark.parametrize(
  ("damage", "reason"),
  [
    (_unfinished, "interrupted"),
    (lambda path: shutil.rmtree(path / FIRST), "it has not been run yet"),
  ],
)
def test_runs_that_are_not_finished_are_listed_with_the_reason(
  small, tmp_path, damage, reason
):
  path = shutil.copytree(small, tmp_path / "out")
  damage(path)
  assert report.main([str(path)]) == 0
  page = _Page((path / "report/report.html").read_text())
  (row,) = page.tables["Missing runs"][1:]
  assert row == ["bsuite:catch", "dqn", "1", reason]
  assert "1 of 20 ids" in page.text


def test_a_median_is_of_seeds_that_have_solved_it():
  episodes = np.array([[200.0, 200.0, 300.0], [10000.0, 400.0, 500.0]])
  solved = np.array([[True, True, False], [False, True, False]])
  value, low, high = drawings.median_episodes(episodes, solved)
  np.testing.assert_array_equal(value, [np.inf, 300.0, np.inf])
  np.testing.assert_array_equal(low, [200.0, 200.0, np.inf])
  np.testing.assert_array_equal(high, [np.inf, 400.0, np.inf])


def _log(path):
  (file,) = (path / FIRST / "bsuite").iterdir()
  return file


@needs_matplotlib
@pytest.mark.parametrize(
  ("damage", "named"),
  [
    (shutil.rmtree, "out"),
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
