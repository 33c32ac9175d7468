"""What is drawn in `curve.png`."""

import io

import pytest

from explorax.experiments.recording import curves, drawing

pytest.importorskip("matplotlib")


def curve(*seeds, **kwargs):
  """The axes of a learning curve."""
  file = io.BytesIO()
  fig = drawing.learning_curve(file, seeds, title="tdu on deep sea", **kwargs)
  assert file.getvalue().startswith(b"\x89PNG")
  return fig.axes[0]


def test_each_policy_has_a_line_and_evaluations_have_one(
  make_columns, make_evaluations
):
  episodes = make_columns(200)
  evaluations = make_evaluations((500, [1.0, 2.0]), (900, [3.0]))
  axes = curve(episodes, evaluations=evaluations)
  assert axes.get_title() == "tdu on deep sea"
  exploiter, explorer, evaluation = axes.get_lines()
  labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
  parts = ("exploiter", "explorer", "evaluation")
  for label, part in zip(labels, parts, strict=True):
    assert part in label
  assert exploiter.get_color() != explorer.get_color()
  assert exploiter.get_xdata()[[0, -1]].tolist() == [20, 2000]
  returns = curves.of_policy(episodes, "exploiter")["episode_return"]
  assert exploiter.get_ydata()[-1] == curves.running_mean(returns, 10)[-1]
  assert evaluation.get_ydata().tolist() == [1.5, 3.0]


def test_several_seeds_are_their_mean_beside_each_of_them(make_columns):
  same = {"policy": "policy"}
  axes = curve(*(make_columns(5 + x, episode_return=float(x), **same) for x in (0, 1)))
  mean, *each = axes.get_lines()
  assert (mean.get_ydata() == 0.5).all()
  assert mean.get_xdata()[[0, -1]].tolist() == [10, 50]
  assert [line.get_ydata()[0] for line in each] == [0.0, 1.0]
