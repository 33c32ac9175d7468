"""What agents learn: the rows of tables, and the runs behind them."""

import numpy as np

from explorax.papers import figures, learning


def test_rows_are_measured_from_runs():
  lines = learning._lines({"mine": "dqn@hidden_sizes=8@min_replay_size=1000"})
  limits = {"episodes": 3, "steps": 30, "eval_every": 10, "eval_episodes": 2}
  env = "bsuite:deep_sea/0"
  rows = (learning._solved_row, learning._evaluated_row, learning._explored_row)
  parts = [learning.Part(row, env, lines, limits, seeds=1) for row in rows]
  (task,) = parts[0].grid().tasks()
  completed = figures.CompletedTask(task.settings, task.compute(task.settings), 1.0, {})
  figure = learning._figure("mine", "Mine", *parts)
  solved, evaluated, explored = figure.table(figures.Table([completed])).split("\n\n")
  assert "> 3 (> 3)" in solved and "mine" in solved and env in solved
  assert "last evaluation" in evaluated
  assert "0.00% to 70.76%" in explored  # Of three episodes, none.


def test_a_goal_is_reached_and_then_kept_or_not():
  def run(seed, *returns):
    steps = [10 * (i + 1) for i in range(len(returns))]
    results = {"evaluations": [[*returns]], "env_steps": [steps]}
    return figures.CompletedTask(
      {"env": "gym:CartPole-v1", "steps": 40, "seeds": [seed]},
      {name: np.array(x) for name, x in results.items()},
      60.0,
      {},
    )

  runs = [run(0, 1, 500, 3, 500), run(1, 1, 1, 1, 1)]
  row = learning._goal_row(figures.Table(runs))
  assert (row["goal reached"], row["in step"]) == ("1/2", "20")
  assert (row["later above it"], row["CPU minutes"]) == ("1/2", "1.0")
