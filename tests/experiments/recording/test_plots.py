import io

import numpy as np
import pytest

from explorax import environments
from explorax.experiments.recording import plots
from explorax.experiments.recording import returns as returns_lib

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture
def drawn(monkeypatch):
  """The axes that are drawn, caught when the figure is saved."""
  axes = []
  savefig = figure.Figure.savefig

  def catch(self, *args, **kwargs):
    axes.extend(self.axes)
    savefig(self, *args, **kwargs)

  monkeypatch.setattr(figure.Figure, "savefig", catch)
  return axes


def curve(returns, evaluations=None, **kwargs) -> bytes:
  file = io.BytesIO()
  evaluations = evaluations or returns_lib.Evaluations()
  plots.learning_curve(
    file, returns, title="tdu on deep sea", evaluations=evaluations, **kwargs
  )
  return file.getvalue()


def test_axes_are_labelled_and_policies_apart(make_episode, drawn):
  returns = returns_lib.Returns()
  for number in range(1, 201):
    returns.add(make_episode(number))
  rule = environments.SolvedRule()
  rule.update(50, 10.0, treasures=20.0)
  assert curve(returns, solved=rule).startswith(b"\x89PNG")
  (axes,) = drawn
  assert axes.get_title() == "tdu on deep sea"
  assert axes.get_xlabel() == "environment steps"
  assert "return per episode" in axes.get_ylabel()
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == [
    "exploiter (100 episodes)",
    "explorer (100 episodes)",
    "solved in episode 50 by bsuite's rule\n(treasure in 40.0% of all episodes)",
  ]
  exploiter, explorer, solved = axes.get_lines()
  assert exploiter.get_color() != explorer.get_color()
  assert exploiter.get_linestyle() != explorer.get_linestyle()
  assert exploiter.get_xdata().tolist() == list(range(20, 2001, 20))
  running = returns_lib.running_mean(returns.of("exploiter"), 10)
  assert exploiter.get_ydata().tolist() == running.tolist()
  assert solved.get_xdata() == [500, 500]


def test_a_long_run_is_thinned_but_keeps_its_ends(make_episode, drawn):
  returns = returns_lib.Returns()
  for number in range(1, 9002):
    returns.add(make_episode(number, policy="policy"))
  curve(returns)
  steps = drawn[0].get_lines()[0].get_xdata()
  assert len(steps) == 4000 and steps[0] == 10 and steps[-1] == 90010


def test_evaluations_are_a_line_of_points(make_episode, make_evaluation, drawn):
  returns = returns_lib.Returns()
  evaluations = returns_lib.Evaluations()
  for number in range(1, 5):
    returns.add(make_episode(number, policy="policy"))
    evaluation = make_evaluation(10 * number, [1.0 * number, 2.0 * number])
    evaluations.add(evaluation.episodes)
  assert curve(returns, evaluations).startswith(b"\x89PNG")
  training, evaluation = drawn[0].get_lines()
  assert evaluation.get_xdata().tolist() == [10, 20, 30, 40]
  assert evaluation.get_ydata().tolist() == [1.5, 3.0, 4.5, 6.0]
  assert evaluation.get_marker() == "o"
  assert evaluation.get_color() != training.get_color()
  labels = [text.get_text() for text in drawn[0].get_legend().get_texts()]
  assert labels == ["policy (4 episodes)", "evaluation (4, mean of each)"]


def test_intrinsic_rewards_of_episodes_one_below_the_other(drawn):
  file = io.BytesIO()
  episodes = {"last": np.array([0.5, 0.25, 0.0]), "best": np.array([1.0, 0.5])}
  plots.intrinsic_rewards(file, episodes, title="ngu on a maze")
  assert file.getvalue().startswith(b"\x89PNG")
  assert [axes.get_title() for axes in drawn] == ["last", "best"]
  lines = [axes.get_lines()[0].get_ydata().tolist() for axes in drawn]
  assert lines == [[0.5, 0.25, 0.0], [1.0, 0.5]]
  assert drawn[-1].get_xlabel() == "step of the episode"
