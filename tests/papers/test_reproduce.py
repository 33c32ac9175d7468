"""The command `reproduce`, on a figure of a user's own that computes nothing much."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from explorax.papers import registry, report, reproduce, types

pytest.importorskip("matplotlib")

OWN = """
import dataclasses, time
import numpy as np
from explorax import ranges
from explorax.papers import claims, layers, panels, types

computed, fails = [], set()

@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  sizes: types.Distinct[types.Size] = (2, 3)
  num_seeds: ranges.PositiveInt = 4

def tasks(config):
  return [
    types.Task(f"size{n}", {"size": n, "seeds": list(range(config.num_seeds))}, n)
    for n in config.sizes
  ]

def compute(settings, context):
  print("begun", flush=True)
  while settings["size"] == 99:
    time.sleep(0.05)
    context.report(0.5)
  context.report(0.5)
  if settings["size"] in fails:
    raise RuntimeError("a failure")
  computed.append(settings["size"])
  rng = np.random.default_rng(settings["size"])
  return {"x": settings["size"] + rng.random((len(settings["seeds"]), 5))}

FIGURE = types.Figure(
  name="own/fig1", title="Sizes", source="us", claim="the greater, the more.",
  config=Config(), quick=Config(sizes=(2,), num_seeds=1),
  tasks=tasks, compute=compute,
  panels=lambda config: [
    [panels.Panel(layers.Curves("x", {str(n): {"size": n} for n in config.sizes}))]
  ],
  claims=lambda config: [
    claims.Compare("it grows", "x", {"size": max(config.sizes)}, {"size": 2}),
    claims.Check("it is there", lambda table: (f"{len(table)} tasks", True)),
  ],
)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
  """The module of the user's figure."""
  (tmp_path / "my_figures.py").write_text(OWN)
  monkeypatch.syspath_prepend(tmp_path)
  import my_figures  # type: ignore[import-not-found]

  monkeypatch.setitem(registry.FIGURES, "own/fig1", my_figures.FIGURE)  # On the page.
  yield my_figures
  del sys.modules["my_figures"]


@pytest.fixture
def call(own, tmp_path, capsys):
  flags = ["--figure=my_figures:FIGURE", f"--output={tmp_path / 'out'}", "--workers=1"]

  def run(*more):
    code = reproduce.main([*flags, *more])
    return code, *capsys.readouterr()

  return run


@pytest.fixture
def out(tmp_path):
  return tmp_path / "out"


def test_a_second_call_only_draws_the_same_bytes(call, own, out):
  code, text, err = call()
  assert (code, err) == (0, "")
  assert own.computed == [3, 2]  # The heaviest first, so that no processor idles.
  drawing = (out / "own_fig1.png").read_bytes()
  assert drawing.startswith(b"\x89PNG")
  assert "held" in text and "it grows" in text
  page = (out / "figures.md").read_text()
  assert "![Sizes](own_fig1.png)" in page and "| held | it grows |" in page
  assert "\n2 held, 0 did not hold, 0 cannot be told.\n" in page
  assert "| [own/fig1](#ownfig1-sizes) | it grows | held | 4 |" in page
  assert "raw results in `raw/own_fig1`" in page
  first = json.loads((out / "own_fig1.json").read_text())
  assert first["findings"][0]["verdict"] == "held"
  assert first["config"]["num_seeds"] == 4
  (out / "own_fig1.png").unlink()
  assert call()[0] == 0
  assert own.computed == [3, 2] and (out / "own_fig1.png").read_bytes() == drawing


def test_a_figure_with_a_failed_task_is_finished_later(call, own, out):
  own.fails.add(3)
  code, _, err = call()
  assert code == 1
  assert "size3 failed: RuntimeError: a failure" in err and "1 of 2" in err
  assert not (out / "own_fig1.png").exists()
  own.fails.clear()
  assert call()[0] == 0
  assert own.computed == [2, 3]


def test_when_the_time_is_up_what_is_complete_is_drawn(call, own, out):
  call()
  (out / "own_fig1.png").unlink()
  assert call("--max_hours=1e-9")[0] == 0 and (out / "own_fig1.png").exists()
  code, _, err = call("--max_hours=1e-9", "--seeds=5")
  assert code == 3 and "run the same command again to resume" in err
  assert own.computed == [3, 2]


def test_other_settings_and_revisions_are_computed_beside_what_there_is(
  call, own, monkeypatch
):
  for flags in ((), ("--seeds=2",), ()):
    call(*flags)
  assert own.computed == [3, 2, 3, 2]
  newer = types.Figure(**{**vars(own.FIGURE), "revision": 2})
  monkeypatch.setattr(own, "FIGURE", newer)
  call()
  assert own.computed == [3, 2] * 3


@pytest.mark.parametrize(
  ("flags", "others"),
  [(["--quick"], "own_fig1_quick.png"), (["--seeds=2"], "own_fig1-*.png")],
)
def test_few_seeds_tell_nothing_and_replace_nothing(call, out, flags, others):
  call()
  first = (out / "own_fig1.json").read_bytes()
  assert "cannot be told" in call(*flags)[1]
  assert (out / "own_fig1.json").read_bytes() == first
  assert len(list(out.glob(others))) == 1
  page = (out / "figures.md").read_text()
  assert "| held |" in page and "| cannot be told |" in page
  assert page.count("| cannot be told |") >= 2


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--figure=ngu/fig3"], "ngu/fig2"),
    (["--figure="], "--figure"),
    (["--figure=my_figures:FIG"], "'FIG'"),
    (["--figure=my_figure:FIGURE"], "'my_figure'"),
    (["--figure=my_figures:Config"], "types.Figure"),
    (["--set", "sizes=1,3"], "sizes"),
    (["--set", "size=5"], "sizes"),
    (["--seeds=0"], "seeds"),
    ([f"--output={__file__}"], "--output"),
    (["--worker=0"], "--workers"),
  ],
)
def test_refusals_are_one_sentence(call, flags, words):
  code, _, err = call(*flags)
  assert code == 2 and words in err and err.count("\n") == 1


def test_results_cannot_be_written_where_a_file_is(call, out):
  out.mkdir()
  (out / "raw").write_text("")
  code, _, err = call()
  assert code == 1 and "could not be written" in err


def test_what_cannot_be_read_stops_no_other_figure(call, out):
  out.mkdir()
  (out / "ngu_fig7.json").write_text("{")
  (out / "own_fig1_quick.json").write_text("{}")
  assert call()[0] == 0
  page = (out / "figures.md").read_text()
  assert page.count("This file cannot be read.") == 2 and "![Sizes]" in page


def test_the_page_is_written_again_from_the_files_of_figures(call, out):
  call()
  page = (out / "figures.md").read_text()
  (out / "figures.md").unlink()
  assert call("--page")[0] == 0
  assert (out / "figures.md").read_text() == page


def test_the_page_in_the_documentation_is_that_of_its_files():
  directory = pathlib.Path(__file__).parents[2] / "docs" / "figures"
  assert report.page(directory) == (directory / "figures.md").read_text()
  for path in directory.glob("*.json"):  # And each figure has its drawing.
    assert path.with_suffix(".png").exists()


def test_all_figures_are_listed_and_found_by_their_paper(capsys):
  assert reproduce.main(["--list"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines] == list(registry.FIGURES)
  assert len(lines) == 29  # None is left out unnoticed.
  assert lines[3].startswith("ez/fig2 ")  # Before ez/fig11.
  assert [f.name for f in registry.choose("tdu,ngu/fig7")][-1] == "ngu/fig7"
  large = ["ez/atari", "ngu/atari", "tdu/atari"]  # Only by their names.
  chosen = [f.name for f in registry.choose(f"all,{','.join(large)}")]
  assert chosen == [name for name in registry.FIGURES if name not in large] + large


def test_ctrl_c_ends_it_with_its_code(tmp_path):
  (tmp_path / "my_figures.py").write_text(OWN)
  process = subprocess.Popen(
    [
      *(sys.executable, "-m", "explorax.papers.reproduce"),
      *("--figure=my_figures:FIGURE", "--set=sizes=99", "--workers=1"),
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=tmp_path,
    env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
  )
  assert process.stdout is not None
  while "begun" not in process.stdout.readline():
    assert process.poll() is None
  process.send_signal(signal.SIGINT)
  _, err = process.communicate(timeout=60)
  assert process.returncode == 130 and "run the same command again to resume" in err


def test_a_table_joins_the_seeds_of_a_problem():
  table = types.Table(
    types.CompletedTask(
      "task",
      {"size": size, "rule": "ez", "seeds": seeds},
      {"x": np.array([[s, s + size] for s in seeds], float)},
      1.0,
      {},
    )
    for size in (4, 2)
    for seeds in ([2, 3], [0, 1])
  )
  assert table.values("size") == [4, 2] and len(table.where(size=2, rule="ez")) == 2
  assert len(table.where(size=lambda n: n > 2, ties=None)) == table.num_seeds() / 2
  assert table.joined("x", size=4)[:, 0].tolist() == [0, 1, 2, 3]
  np.testing.assert_array_equal(table.per_seed("x"), [[s + 2, s + 1] for s in range(4)])
  assert table.score("x").tolist() == [1.5, 2.5, 3.5, 4.5]
  assert table.score(lambda t: t.joined("x", size=4)[:, 0]).tolist() == [0, 1, 2, 3]
  with pytest.raises(ValueError, match="unpack"):
    table.joined("x")


def test_tasks_are_split_by_seeds():
  tasks = types.split("name", {"size": 3}, 5, 2, 10.0)
  assert [task.settings["seeds"] for task in tasks] == [[0, 1], [2, 3], [4]]
  assert [task.name for task in tasks] == ["name_seed0", "name_seed2", "name_seed4"]
  assert [task.weight for task in tasks] == [20, 20, 10]
