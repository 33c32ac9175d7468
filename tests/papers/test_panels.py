"""Panels and layers: what is in the drawing is what was measured."""

import numpy as np
import pytest

from explorax.papers import layers, panels, types

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
  (axes,) = panels.draw([[panel]], table(), (4, 3)).axes
  return axes


def test_a_curve_over_a_setting_is_the_mean_of_each_value():
  axes = drawn(layers.Curves("x", LINES, "size", markers=True), title="t", xlabel="s")
  a, b = axes.lines
  np.testing.assert_array_equal(a.get_xdata(), [2, 4])
  np.testing.assert_array_equal(b.get_ydata(), [60, 120])
  # A line without tasks leaves the style of the others.
  assert (a.get_marker(), b.get_marker()) == ("o", "^")
  texts = [text.get_text() for text in axes.get_legend().get_texts()]
  assert texts == ["A", "B"] and axes.get_title() == "t" and axes.get_xlabel() == "s"


def test_a_curve_of_blocks_counts_from_one():
  axes = drawn(layers.Curves("curve", {"A": LINES["A"]}, blocks=3), size=2)
  np.testing.assert_allclose(axes.lines[0].get_xdata(), [1.5, 3.5, 5.5])
  np.testing.assert_allclose(axes.lines[0].get_ydata(), [6.5, 8.5, 10.5])


@pytest.mark.parametrize("x", [range(6), lambda table: np.arange(6)])
def test_a_thin_line_has_a_statistic_and_no_interval(x):
  median = lambda values: np.median(values, axis=-2)  # noqa: E731
  thin = layers.Curves(
    "curve", {"_a": LINES["A"]}, x, median, thin=layers.THIN, first=1
  )
  axes = drawn(thin, layers.horizontal(3.0, "limit"), size=2)
  np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.arange(6) + 6)
  assert not axes.collections
  assert [t.get_text() for t in axes.get_legend().get_texts()] == ["limit"]


def test_seeds_are_marks_hollow_where_something_did_not_happen():
  axes = drawn(layers.Seeds("x", "size", {"A": LINES["A"]}, "solved", "unsolved"))
  filled, hollow = (
    [x for line in axes.lines if is_hollow(line) == face for x in line.get_ydata()]
    for face in (False, True)
  )
  assert (filled, hollow) == ([2, 12, 4, 24], [4, 8])


def is_hollow(line) -> bool:
  return line.get_markerfacecolor() == "none"


def test_rows_of_intervals_and_groups_of_bars():
  axes = drawn(layers.Intervals("x", LINES), size=2)
  assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]
  assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] == [
    6,
    60,
  ]
  sizes = {"two": {"size": 2}, "four": {"size": 4}}
  rules = {label: LINES[label] for label in "AB"}
  bars = layers.Bars(lambda t: t.per_seed("x"), sizes, rules, "solved", "solved")
  assert [bar.get_height() for bar in drawn(bars).patches] == [6, 12, 60, 120]


def test_a_heat_map_has_a_value_for_each_pair_of_settings():
  rules = {"a": 0, "b": 1}
  numbered = types.Table(
    task._replace(settings={**task.settings, "rule": rules[task.settings["rule"]]})
    for task in table()
  )
  panel = panels.Panel(layers.HeatMap("x", "size", "rule", "mean"), grid=None)
  axes, _ = panels.draw([[panel]], numbered, (4, 3)).axes
  assert [t.get_text() for t in axes.texts] == ["6.00", "12.00", "60.00", "120.00"]


def test_a_panel_covers_its_cells_and_maps_share_a_scale():
  wide = panels.Panel(layers.horizontal(1.0), share_y=True, ylim=(0, 7))
  maps = panels.Maps(
    lambda t: t.joined("curve", size=2),
    {label: LINES[label] for label in "AB"},
    "colour bar",
  )
  small = panels.Panel(layers.horizontal(2.0), share_y=True, grid=None)
  fig = panels.draw([[wide, maps, maps], [wide, None, small]], table(), (4, 3))
  tall, first, second, bar, other = fig.axes
  assert tall.get_subplotspec().rowspan == range(2)
  assert other.get_ylim() == (0, 7)
  limits = [axes.images[0].get_clim() for axes in (first, second)]
  assert limits == [(0, 170)] * 2 and bar.get_ylabel() == "colour bar"
