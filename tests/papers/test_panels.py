"""Panels and layers: what is in the drawing is what was measured."""

import io
import struct

import numpy as np
import pytest

from explorax.experiments.recording import drawing
from explorax.papers import layers, panels, scorecard, types
from explorax.papers.bonuses import minigrid
from explorax.papers.ucb import small

pytest.importorskip("matplotlib")


def table() -> types.Table:
  """Rules a and b at sizes 4 and 2: `x` `[S]` and `curve` `[S, 6]`."""
  return types.Table(
    types.CompletedTask(
      f"{rule}_{size}",
      {"rule": rule, "size": size, "seeds": [0, 1, 2]},
      {
        "x": np.array([1.0, 2.0, 6.0]) * size * scale,
        "curve": np.arange(18.0).reshape(3, 6) * scale,
        "solved": np.array([1, 0, 1]),
      },
      1.0,
      {},
    )
    for rule, scale in (("a", 1.0), ("b", 10.0))
    for size in (4, 2)
  )


LINES = {"A": {"rule": "a"}, "missing": {"rule": "c"}, "B": {"rule": "b"}}


def drawn(*layer, size=None, **options):
  """The axes of one panel."""
  panel = panels.Panel(*layer, where={"size": size} if size else None, **options)
  (axes,) = panels.draw([[panel]], table(), 3).axes
  return axes


def test_few_seeds_are_drawn_one_by_one_and_more_as_a_band():
  axes = drawn(layers.Curves("x", LINES, "size", markers=True), title="t", xlabel="s")
  first, second = (x for x in axes.lines if x.get_label() in LINES)
  np.testing.assert_array_equal(first.get_xdata(), [2, 4])
  np.testing.assert_array_equal(second.get_ydata(), [60, 120])
  assert len(axes.lines) == 2 * (1 + 3) and not axes.collections
  assert axes.get_title() == "t" and axes.get_xlabel() == "s"
  texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
  assert texts == ["A", "B"]
  many = types.Table(
    task._replace(results={"x": np.arange(6.0)}) for task in table().where(size=2)
  )
  panel = panels.Panel(layers.Curves("x", LINES, "size"))
  (axes,) = panels.draw([[panel]], many, 3).axes
  assert len(axes.lines) == len(axes.collections) == 2


def test_runs_that_did_not_solve_are_one_hollow_mark_with_their_number():
  lines = {"A": {"rule": "a"}}
  marks = layers.Seeds("x", "size", lines, "solved", "not solved")
  axes = drawn(marks)
  hollow = [x for x in axes.lines if x.get_fillstyle() == "none"]
  assert [line.get_ydata().tolist() for line in hollow] == [[4], [8], []]
  assert [text.get_text() for text in axes.texts] == ["1", "1"]
  rows = drawn(layers.Rows("x", lines, "solved", "not solved"))
  assert [text.get_text() for text in rows.texts] == ["4 of 6"]


def test_a_drawing_is_the_same_bytes_each_time():
  def draw() -> bytes:
    panel = panels.Panel(layers.Curves("x", LINES, "size"))
    drawing.save(file := io.BytesIO(), panels.draw([[panel]], table(), 3, "title"))
    return file.getvalue()

  content = draw()
  assert content == draw() and b"Software" not in content and b"tEXt" not in content
  width, _ = struct.unpack(">II", content[16:24])
  assert width == 2 * 830


def test_an_agent_has_one_colour_and_marker():
  alone = drawing.styles(["tdu"])["tdu"]
  both = drawing.styles(["unknown", "bootstrapped_dqn", "TDU"])
  assert both["TDU"] == alone and len({style.color for style in both.values()}) == 3
  variants = drawing.styles(["TDU, β = 1", "TDU, β = 3"])
  assert variants["TDU, β = 3"].color == alone.color
  assert {style.marker for style in variants.values()} == {alone.marker}


def test_agents_of_a_figure_keep_their_styles_and_no_two_look_alike():
  for agents in (minigrid.METHODS, scorecard.METHODS, small.AGENTS):
    names = [*agents, *map(str, range(40))]
    styles = drawing.styles(names)
    assert all(styles[name] == drawing.styles([name])[name] for name in agents)
    assert len({style[::2] for style in styles.values()}) == len(names)


def test_a_logarithmic_axis_of_two_decades_has_labels_at_1_2_and_5():
  axes = drawn(layers.vertical(1), xscale="log", xlim=(15_000, 250_000))
  labels = {text.get_text() for text in axes.get_xticklabels()}
  assert labels >= {"20k", "50k", "100k", "200k"} and "30k" not in labels
