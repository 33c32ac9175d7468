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


def test_a_heat_map_has_a_value_for_each_pair_of_settings():
  rules = {"a": 0, "b": 1}
  numbered = types.Table(
    task._replace(settings={**task.settings, "rule": rules[task.settings["rule"]]})
    for task in table()
  )
  panel = panels.Panel(layers.HeatMap("x", "size", "rule", "mean"), grid=None)
  axes, _ = panels.draw([[panel]], numbered, (4, 3)).axes
  assert [t.get_text() for t in axes.texts] == ["6.00", "12.00", "60.00", "120.00"]
