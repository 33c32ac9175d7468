"""What is in a drawing is what was measured."""

import dataclasses

import numpy as np
import pytest

from explorax.experiments.recording import drawing
from explorax.papers import draw, figures, scorecard
from explorax.papers.bonuses import minigrid
from explorax.papers.ucb import small

pytest.importorskip("matplotlib")

LINES = {"A": {"rule": "a"}, "missing": {"rule": "c"}, "B": {"rule": "b"}}


def table(seeds: int = 3) -> figures.Table:
  """Rules a and b at sizes 4 and 2; the second seed solves nothing."""
  return figures.Table(
    figures.CompletedTask(
      {"rule": rule, "size": size, "seeds": [*range(seeds)]},
      {
        "x": np.arange(1.0, seeds + 1) * size * scale,
        "solved": np.where(np.arange(seeds) == 1, 0, 5),
        "episodes": np.full(seeds, 8),
      },
      1.0,
      {},
    )
    for rule, scale in (("a", 1.0), ("b", 10.0))
    for size in (4, 2)
  )


def drawn(panel: draw.Panel, seeds: int = 3):
  """The panel's axes."""
  _, axes = drawing.new(width=4, height=3)
  panel.draw(axes, table(seeds))
  return axes


def test_few_seeds_are_drawn_one_by_one_and_more_as_a_band():
  curves = draw.Curves(y="x", lines=LINES, x="size", axes={"title": "t", "xlabel": "s"})
  axes = drawn(curves)
  first, second = (x for x in axes.lines if x.get_label() in LINES)
  np.testing.assert_array_equal(first.get_xdata(), [2, 4])
  np.testing.assert_array_equal(second.get_ydata(), [40, 80])
  assert len(axes.lines) == 2 * (1 + 3) and not axes.collections
  assert axes.get_title() == "t" and axes.get_xlabel() == "s (n = 3)"
  axes = drawn(curves, seeds=6)
  assert len(axes.lines) == len(axes.collections) == 2


def test_panels_without_tasks_are_left_out():
  curves = draw.Curves(y="x", lines=LINES, x="size")
  there, missing = (dataclasses.replace(curves, where={"size": n}) for n in (4, 9))
  only = draw.draw([[there]], table())
  assert draw.draw([[there, missing], [missing]], table()) == only
  assert draw.draw([[missing]], table()) != only


def test_runs_that_did_not_solve_are_one_hollow_mark():
  lines = {"A": {"rule": "a"}}
  axes = drawn(draw.Marks(event="solved", lines=lines, x="size"))
  hollow = [x for x in axes.lines if x.get_fillstyle() == "none"]
  assert [line.get_ydata().tolist() for line in hollow] == [[8], [8]]
  rows = drawn(draw.Rows(lines=lines))
  assert [text.get_text() for text in rows.texts] == ["4 of 6"]


def test_the_band_of_a_fitted_power_is_that_of_the_means_of_a_regression():
  x = np.array([10, 14, 20, 10, 14, 20.0])
  y = x**2 * np.exp(np.random.default_rng(0).normal(0, 0.3, 6))
  _, axes = drawing.new(width=4, height=3)
  slope = draw._draw_power(axes, x, y, "black")
  design = np.stack([np.ones(6), np.log(x)], axis=1)
  (_, expected), (residual,), *_ = np.linalg.lstsq(design, np.log(y), rcond=None)
  assert slope == pytest.approx(expected)
  at = np.array([1, np.log(10)])
  error = np.sqrt(residual / 4 * at @ np.linalg.inv(design.T @ design) @ at)
  edges = axes.collections[0].get_paths()[0].vertices
  ends = np.unique(np.log(edges[np.isclose(edges[:, 0], 10), 1]).round(9))
  assert np.ptp(ends) == pytest.approx(2 * 2.7764451 * error)  # t of 4 degrees.


def test_agents_of_a_figure_keep_their_styles_and_no_two_look_alike():
  for agents in (minigrid.METHODS, scorecard.METHODS, small.AGENTS):
    names = [*agents, *map(str, range(40))]
    styles = drawing.styles(names)
    assert all(styles[name] == drawing.styles([name])[name] for name in agents)
    assert len({style[::2] for style in styles.values()}) == len(names)
  variants = drawing.styles(["TDU, β = 1", "TDU, β = 3"])
  assert variants["TDU, β = 3"].color == drawing.styles(["tdu"])["tdu"].color
