"""What agents learn: the runs behind the tables, and their rows."""

import numpy as np

from explorax.papers import figures, learning


def test_an_evaluation_is_the_mean_of_its_episodes():
  lines = {"mine": learning._line("dqn", "hidden_sizes=8", "min_replay_size=1000")}
  part = learning.Part("bsuite:catch/0", lines, 30, 10, eval_episodes=2, seeds=1)
  (task,) = part.grid().tasks()
  results = task.compute(task.settings)
  assert results["evaluations"].shape == results["env_steps"].shape == (1, 3)
  assert np.all(np.isin(results["evaluations"], (-1, 0, 1)))


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
  row = learning.row(figures.Table(runs))
  assert (row["goal reached"], row["in step"]) == ("1/2", "20")
  assert (row["later above it"], row["CPU minutes"]) == ("1/2", "1.0")
