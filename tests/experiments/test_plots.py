import io

import pytest

from explorax.experiments import plots
from explorax.experiments import returns as returns_lib

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


def curve(returns, **kwargs) -> bytes:
  file = io.BytesIO()
  plots.learning_curve(file, returns, title="tdu on deep sea", **kwargs)
  return file.getvalue()


def test_axes_are_labelled_and_policies_apart(make_episode, drawn):
  returns = returns_lib.Returns()
  for number in range(1, 201):
    returns.add(make_episode(number))
  assert curve(returns, solved_episode=50).startswith(b"\x89PNG")
  (axes,) = drawn
  assert axes.get_title() == "tdu on deep sea"
  assert axes.get_xlabel() == "environment steps"
  assert "return per episode" in axes.get_ylabel()
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == [
    "exploiter (100 episodes)",
    "explorer (100 episodes)",
    "solved in episode 50",
  ]
  exploiter, explorer, solved = axes.get_lines()
  assert exploiter.get_color() != explorer.get_color()
  assert exploiter.get_xdata().tolist() == list(range(20, 2001, 20))
  running = returns_lib.running_mean(returns.of("exploiter"))
  assert exploiter.get_ydata().tolist() == running.tolist()
  assert solved.get_xdata() == [500, 500]


def test_a_long_run_is_thinned_but_keeps_its_ends(make_episode, drawn):
  returns = returns_lib.Returns()
  for number in range(1, 9002):
    returns.add(make_episode(number, policy="policy"))
  curve(returns)
  steps = drawn[0].get_lines()[0].get_xdata()
  assert len(steps) == 4000 and steps[0] == 10 and steps[-1] == 90010


def test_a_single_episode_can_be_drawn(make_episode):
  returns = returns_lib.Returns()
  returns.add(make_episode(1))
  assert curve(returns).startswith(b"\x89PNG")
