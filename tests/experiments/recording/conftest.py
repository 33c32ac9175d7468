"""The columns of a run's files."""

import numpy as np
import pytest

from explorax.experiments.recording import rows


@pytest.fixture
def make_columns(make_episode, tmp_path):
  """The columns of `metrics.csv` of so many episodes; `changes` are of each of them."""

  def make(episodes: int, **changes) -> rows.Rows:
    file = rows.CsvFile(tmp_path / rows.METRICS, ("loss",))
    for number in range(1, episodes + 1):
      file(make_episode(number, **changes))
    file.close()
    return rows.read(tmp_path / rows.METRICS)

  return make


@pytest.fixture
def make_evaluations():
  """The columns of `evaluation.csv`, of (environment steps, returns) each."""

  def make(*evaluations: tuple[int, list[float]]) -> rows.Rows:
    pairs = [(steps, value) for steps, values in evaluations for value in values]
    env_steps, returns = np.array(pairs, np.float64).reshape(-1, 2).T
    left = np.full(len(pairs), np.nan)
    return {"env_steps": env_steps, "episode_return": returns, "left": left}

  return make
