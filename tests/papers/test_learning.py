"""What agents learn: the tables of the pages, and the runs behind them."""

import pathlib

import pytest

from explorax.papers import figures, learning

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def completed(tasks):
  return figures.Table(
    figures.CompletedTask(x.settings, x.compute(x.settings), 1.0, {}) for x in tasks
  )


# No update happens, so that little is compiled.
@pytest.mark.parametrize(
  ("row", "env", "settings", "words"),
  [
    (learning._solved_row, "bsuite:deep_sea/0", {"episodes": 3}, "> 3"),
    (
      learning._goal_row,
      "gym:CartPole-v1",
      {"steps": 40, "eval_every": 20, "eval_episodes": 2},
      "0/1",
    ),
    (learning._explored_row, "bsuite:catch/0", {"steps": 5}, "rooms of each seed"),
  ],
)
def test_learning_is_measured_from_runs(row, env, settings, words):
  lines = learning._lines({"mine": "dqn@hidden_sizes=8@min_replay_size=1000"})
  part = learning.Part(row, env, lines, settings, seeds=1)
  figure = learning._figure("mine", "Mine", part)
  table = figure.table(figure.stages({}, completed))
  assert words in table and env in table


def test_a_goal_is_reached_and_then_kept_or_not():
  def run(seed, *returns):
    steps = [10 * (i + 1) for i in range(len(returns))]
    results = {"evaluations": [[*returns]], "env_steps": [steps]}
    return figures.CompletedTask(
      {"env": "gym:CartPole-v1", "steps": 40, "seeds": [seed]},
      {name: learning.np.array(x) for name, x in results.items()},
      60.0,
      {},
    )

  runs = [run(0, 1, 500, 3, 500), run(1, 1, 1, 1, 1)]
  row = learning._goal_row(figures.Table(runs))
  assert (row["goal reached"], row["in step"]) == ("1/2", "20")
  assert (row["later above it"], row["CPU minutes"]) == ("1/2", "1.0")


def test_means_of_shares_have_exact_intervals():
  # Clopper and Pearson: 1 of 2 is in [1 - √0.975, √0.975].
  assert learning._mean(learning.np.array([1.0, 0.0])) == "0.5 [0.0126, 0.987]"
