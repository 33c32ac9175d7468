"""What is drawn in `curve.png`."""

import io

import pytest

from explorax import environments
from explorax.experiments.recording import curves, drawing, plots

pytest.importorskip("matplotlib")


def curve(*seeds, **kwargs):
  """The axes of a learning curve."""
  file = io.BytesIO()
  fig = plots.learning_curve(file, seeds, title="tdu on deep sea", **kwargs)
  assert file.getvalue().startswith(b"\x89PNG")
  return fig.axes[0]


def test_a_name_that_is_no_formula_is_drawn_as_it_is():
  fig, _ = drawing.new()
  drawing.save(file := io.BytesIO(), fig, title="module:$\\frac$")
  assert file.getvalue().startswith(b"\x89PNG")


def test_each_policy_has_a_line_and_the_solved_episode_is_marked(
  make_columns, make_evaluations
):
  episodes = make_columns(200)
  rule = environments.SolvedRule()
  rule.update(50, 10.0, treasures=20.0)
  evaluations = make_evaluations((500, [1.0, 2.0]), (900, [3.0]))
  axes = curve(episodes, solved=rule, evaluations=evaluations)
  assert axes.get_title() == "tdu on deep sea"
  assert axes.get_xlabel() == "environment steps"
  exploiter, explorer, evaluation, solved = axes.get_lines()
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  parts = ("exploiter", "explorer", "evaluation", "episode 50")
  for label, part in zip(labels, parts, strict=True):
    assert part in label
  assert exploiter.get_color() != explorer.get_color()
  assert exploiter.get_linestyle() != explorer.get_linestyle()
  assert exploiter.get_xdata().tolist() == list(range(20, 2001, 20))
  returns = curves.of_policy(episodes, "exploiter")["episode_return"]
  assert exploiter.get_ydata().tolist() == curves.running_mean(returns, 10).tolist()
  assert evaluation.get_ydata().tolist() == [1.5, 3.0]
  assert solved.get_xdata() == [500, 500]


def test_several_seeds_are_their_mean_with_a_band(make_columns):
  axes = curve(*(make_columns(5 + x, episode_return=float(x)) for x in (0, 1)))
  mean, *each = axes.get_lines()
  assert (mean.get_ydata() == 0.5).all() and len(axes.collections) == 1
  assert mean.get_xdata()[[0, -1]].tolist() == [10, 50]
  assert [line.get_ydata()[0] for line in each] == [0.0, 1.0]
