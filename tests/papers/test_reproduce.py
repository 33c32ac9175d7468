"""The command `reproduce`, on a figure of a user's own that computes nothing much."""

import dataclasses

import numpy as np
import pytest

from explorax.papers import draw, figures, judge, reproduce

pytest.importorskip("matplotlib")

computed: list[int] = []  # The sizes of the tasks.
failing: set[int] = set()


def compute(settings):
  if settings["size"] in failing:
    raise RuntimeError("a failure")
  computed.append(settings["size"])
  rng = np.random.default_rng(settings["size"])
  return {"x": settings["size"] + rng.random((len(settings["seeds"]), 5))}


def grid(*sizes):
  return figures.Grid(
    compute, [{"rule": "a"}], {"size": sizes}, num_seeds=4, seeds_per_task=4
  )


FIGURE = figures.Figure(
  name="own/fig1",
  title="Sizes",
  source="us",
  runs=[grid(2, 3)],
  quick={"size": (2,), "num_seeds": 1},
  panels=[[draw.Curves(y="x", lines={str(n): {"size": n} for n in (2, 3)})]],
  claims=[
    judge.Above("it grows", "x", {"size": 3}, {"size": 2}),
    judge.Check("it is there", lambda table: (True, f"{len(table)} tasks", None)),
  ],
)
STAGES = dataclasses.replace(
  FIGURE,
  then=lambda table: [grid(2 * len(table))],
  table=lambda table: f"{len(table)} results",
)


@pytest.fixture
def out(tmp_path):
  return tmp_path / "out"


@pytest.fixture
def call(out, capsys):
  computed.clear()
  failing.clear()
  flags = [f"--figure={__name__}:FIGURE", f"--output={out}", "--workers=1"]

  def run(*more):
    code = reproduce.main([*flags, *more])
    return code, *capsys.readouterr()

  return run


def test_a_failed_task_is_computed_later_and_then_nothing_is(call, out):
  failing.add(3)
  code, _, err = call()
  assert code == 1
  assert "RuntimeError: a failure" in err and "own/fig1 is not drawn" in err
  drawing, verdicts = out / "own_fig1.png", out / "verdicts.csv"
  assert not drawing.exists()
  failing.clear()
  code, text, err = call()
  assert (code, err, computed) == (0, "", [2, 3])
  assert "held" in text and "it grows" in text
  before = drawing.read_bytes(), verdicts.read_bytes()
  assert before[0].startswith(b"\x89PNG")
  assert call()[0] == 0
  assert computed == [2, 3]
  assert before == (drawing.read_bytes(), verdicts.read_bytes())


def test_other_settings_are_computed_beside_what_there_is(call, out):
  for flags in ((), ("--set=num_seeds=2",), ("--set=size=2,5",), ("--quick",), ()):
    assert call(*flags)[0] == 0
  # The largest first, so that no processor idles.
  assert computed == [3, 2, 3, 2, 5, 2]
  versions = ("", "_changed", "_quick")
  assert [*sorted(out.glob("*.png"))] == [out / f"own_fig1{x}.png" for x in versions]
  rows = reproduce.read_verdicts(out)
  assert [row["verdict"] for row in rows] == ["held"] * 2  # Of the full version.


def test_further_runs_follow_from_the_results_of_the_first(call):
  call(f"--figure={__name__}:STAGES")
  assert computed == [3, 2, 4]


def test_pages_have_the_tables_and_choose_the_drawings(call, out, tmp_path):
  page = tmp_path / "page.md"
  page.write_text(
    "# A\n<!-- table: own/fig1 -->\n<!-- end -->\n"
    "<!-- table: findings of own/fig1 -->\nold\n<!-- end -->\nthe end\n"
  )
  flags = [f"--figure={__name__}:STAGES", f"--pages={tmp_path}"]
  call(*flags, "--quick")
  assert "old" in (text := page.read_text()) and "results" not in text
  call(*flags)
  text = page.read_text()
  assert "\n3 results\n" in text and text.endswith("the end\n")
  assert "| it is there | held | 3 tasks | 4 | counted |" in text and "old" not in text
  assert not [*out.glob("*.png")]
  page.write_text(
    text.replace("own/fig1 -->\n|", "own/fig1 own/fig2 -->\n![](own_fig1.png)|")
  )
  changed = page.read_text()
  call(*flags)
  assert page.read_text() == changed  # There are no findings of own/fig2.
  assert [*out.glob("*.png")] == [out / "own_fig1.png"]


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--figure=tdu/scalin"], "tdu/scaling"),
    (["--figure="], "--figure"),
    (["--set", "sizes=3"], "Did you mean size"),
    (["--set", "rule=b"], "rule=b"),
    ([f"--output={__file__}"], __file__),
    (["--pages=nowhere"], "no Markdown pages in nowhere"),
  ],
)
def test_refusals_are_one_sentence(call, flags, words):
  code, _, err = call(*flags)
  assert code == 2 and words in err and err.count("\n") == 1
