"""The command `reproduce`, on a figure of a user's own that computes nothing much."""

import json
import pathlib
import sys

import numpy as np
import pytest

from explorax.papers import registry, report, reproduce, types

pytest.importorskip("matplotlib")

OWN = """
import dataclasses
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

def compute(settings):
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
STAGES = types.Figure(**{
  **vars(FIGURE),
  "then": lambda config, table: tasks(Config(sizes=(2 * len(table),))),
  "text": lambda config, table: f"{len(table)} results",
})
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
  assert "![Sizes](own_fig1.png)" in page and "| held | learning | it grows |" in page
  assert "| learning | the paper's, of agents that learn | 2 | 0 | 0 |" in page
  assert "| [own/fig1](#ownfig1-sizes) | 2 | 0 | 0 |" in page
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


def test_other_settings_are_computed_beside_what_there_is(call, own):
  for flags in ((), ("--seeds=2",), ()):
    call(*flags)
  assert own.computed == [3, 2, 3, 2]


def test_further_tasks_follow_from_the_results_of_the_first(call, own, out):
  call("--figure=my_figures:STAGES")
  assert own.computed == [3, 2, 4]
  assert "\n\n3 results\n\n" in (out / "figures.md").read_text()


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--figure=ngu/fig3"], "ngu/fig2"),
    (["--figure="], "--figure"),
    (["--set", "sizes=1,3"], "sizes"),
    ([f"--output={__file__}"], "--output"),
  ],
)
def test_refusals_are_one_sentence(call, flags, words):
  code, _, err = call(*flags)
  assert code == 2 and words in err and err.count("\n") == 1


def test_what_cannot_be_read_stops_no_other_figure(call, out):
  out.mkdir()
  (out / "ngu_fig7.json").write_text("{")
  (out / "own_fig1_quick.json").write_text("{}")
  assert call()[0] == 0
  page = (out / "figures.md").read_text()
  assert page.count("This file cannot be read.") == 2 and "![Sizes]" in page


def test_the_page_in_the_documentation_is_that_of_its_files():
  directory = pathlib.Path(__file__).parents[2] / "docs" / "figures"
  assert report.page(directory) == (directory / "figures.md").read_text()
  for path in directory.glob("*.json"):  # And each figure has its drawing.
    assert path.with_suffix(".png").exists()


def test_large_figures_are_chosen_by_their_names_alone():
  large = [name for name, figure in registry.FIGURES.items() if figure.large]
  assert large
  chosen = [f.name for f in registry.choose(f"all,{','.join(large)}")]
  assert chosen == [name for name in registry.FIGURES if name not in large] + large


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
