"""The report of runs on bsuite: its page and drawings, and what it refuses."""

import base64
import html.parser
import importlib.util
import io
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
WHY = "train-images are not in <mnist>"
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
  missing = {(agent, "mnist/0", seed): WHY for agent in AGENTS for seed in (0, 1)}
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
def test_its_drawings_lie_beside_it_and_are_told_in_words(made):
  from matplotlib import image

  path, _, page = made
  images = [a for tag, a in page.elements if tag == "img"]
  inlined = {base64.b64decode(a["src"].split(",")[1]) for a in images}
  files = {p.name: p.read_bytes() for p in (path / "report").glob("*.png")}
  assert set(files.values()) == inlined and len(images) == len(files)
  assert set(files) == {
    "scores_by_tag.png",
    "radar.png",
    "scores_by_experiment.png",
    "scaling_deep_sea.png",
    "scaling_deep_sea_stochastic.png",
    *(f"curve_{experiment}.png" for experiment in SHOWN),
  }
  for name, content in files.items():
    pixels = image.imread(io.BytesIO(content))
    assert pixels.shape[1] == 750 and pixels[..., :3].std() > 0.01, name
  assert all(len(a["alt"]) > 40 for a in images)
  assert not [
    p for p in (path / "report").iterdir() if p.suffix not in (".png", ".html")
  ]


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
def test_the_treasures_of_deep_sea_are_beside_bsuites_rule(made):
  _, done, page = made
  agent = AGENTS[0]
  rows = {row[0]: row for row in page.tables["The treasure"][1:]}
  sizes = {"deep_sea/0": 10, "deep_sea/3": 16, "deep_sea_stochastic/0": 10}
  for bsuite_id, size in sizes.items():
    experiment = bsuite_id.partition("/")[0]
    log = done[agent, bsuite_id, 0]
    rate = log["denoised_return"][-1] / log["episode"][-1]  # Of each seed.
    best = (1 - 1 / size) ** (size - 1) if "stochastic" in experiment else 1.0
    row = rows[f"{experiment}, N = {size}"]
    assert row[1] == f"{best:.1%}"
    column = page.tables["The treasure"][0].index(agent)
    assert re.fullmatch(rf"{rate:.1%}; solved by [03] of 3", row[column]), row
  assert len(rows) == 14


@needs_matplotlib
def test_it_says_what_is_missing_and_how_each_number_was_made(made):
  path, done, page = made
  assert f"{len(done):,} runs of" in page.text and "6 runs of a sweep" in page.text
  rows = page.tables["Missing runs"][1:]
  assert rows == [["bsuite:mnist", agent, "2", WHY] for agent in AGENTS]
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


@needs_matplotlib
def test_a_sweep_of_few_episodes_and_one_seed(logs, write_sweep, tmp_path, capsys):
  short = logs["short"]
  done = {
    ("dqn", bsuite_id, 4): log
    for experiment in ("bandit", "deep_sea_stochastic", "mnist")
    for bsuite_id, log in short[experiment].items()
    if log["episode"][-1] == (170 if experiment == "deep_sea_stochastic" else 25)
  }
  # Its score begins with the hundredth episode.
  done["dqn", "deep_sea_stochastic/0", 4] = {
    name: values[:20]
    for name, values in short["deep_sea_stochastic"]["deep_sea_stochastic/0"].items()
  }
  write_sweep(tmp_path / "out", done, 25)
  elsewhere = tmp_path / "deep" / "page"
  assert report.main([f"--output={elsewhere}", str(tmp_path / "out")]) == 0
  said = capsys.readouterr().out
  assert f"{len(done)} runs, 0 missing" in said
  assert str(elsewhere / "report.html") in said
  assert not (tmp_path / "out/report").exists()
  page = _Page((elsewhere / "report.html").read_text())
  assert "25 of 10,000 episodes" in page.cell(
    "Scores by experiment", "bandit", "experiment"
  )
  cell = page.cell("Scores by experiment", "bandit", "dqn")
  assert re.fullmatch(r"\d\.\d\d \| 1 seed, \d of 20 ids", cell), cell
  assert page.cell("Scores by experiment", "mnist", "dqn").startswith("–")
  assert '<td class="number"><strong>' not in page.text  # There is none to compare.
  assert "Missing runs" not in page.tables and "Paper 4" not in page.text


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


def _failed(path):
  shutil.rmtree(path / FIRST)
  (path / FIRST).mkdir()
  (path / FIRST / "failed.txt").write_text("its process died.\n\nTraceback")


@needs_matplotlib
@pytest.mark.parametrize(
  ("damage", "reason"),
  [
    (_unfinished, "interrupted"),
    (_failed, "its process died"),
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


@needs_matplotlib
def test_each_set_of_versions_is_listed(small, tmp_path):
  path = shutil.copytree(small, tmp_path / "out")
  new = {"packages": {"jax": "1.2.3"}, "xla_flags": "--xla_cpu_fast=1"}
  _change(path, f"{FIRST}/config.json", lambda x: x["versions"].update(new))
  assert report.main([str(path)]) == 0
  page = (path / "report/report.html").read_text()
  for version in ("1.2.3, [^<]*XLA_FLAGS --xla_cpu_fast=1", "9.8.7, "):
    assert re.search(rf"1 of the 2 runs were made with [^<]*jax {version}", page)
  assert page.count("XLA_FLAGS") == 1


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
    (lambda p: (p / "sweep.json").write_text('{"runs": [1]}'), "sweep.json"),
    (lambda p: _log(p).write_text("episode\n2\n1\n"), "catch-0.csv"),
    (lambda p: _log(p).write_text("episode\n"), "catch-0.csv"),
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


@needs_matplotlib
def test_a_report_that_cannot_be_written_leaves_what_was_there(
  small, tmp_path, capsys, small_disk
):
  (tmp_path / "file").write_text("kept")
  assert report.main([str(small), f"--output={tmp_path / 'file'}"]) == 1
  assert str(tmp_path / "file") in capsys.readouterr().err
  assert (tmp_path / "file").read_text() == "kept"
  where = tmp_path / "page"
  assert report.main([str(small), f"--output={where}"]) == 0
  before = {p.name: p.read_bytes() for p in where.iterdir()}
  capsys.readouterr()
  with small_disk(2**14):
    code = report.main([str(small), f"--output={where}"])
  assert code == 1
  err = capsys.readouterr().err
  assert str(where) in err and err.count("\n") == 1
  assert {p.name: p.read_bytes() for p in where.iterdir()} == before
