"""`--seeds`: many seeds at once, each of which leaves what it would leave alone."""

import csv
import json

import numpy as np
import pytest

from explorax.experiments import run

pytest.importorskip("matplotlib")
COMMAND = [
  "--agent=dqn",
  "--env=jax:deep_sea/4",
  "--runner=device",
  "--steps=320",
  "--set=hidden_sizes=8",
  "--set=batch_size=4",
  "--set=min_replay_size=20",
]
TIMED = {"wall_seconds", "steps_per_second"}
# Sums over a batch, whose last digits depend on how XLA has laid it out.
ROUNDED = {"loss", "q", "td_error"}


def rows(path):
  with open(path, newline="") as file:
    return [
      {name: value for name, value in row.items() if name not in TIMED}
      for row in csv.DictReader(file)
    ]


def test_seeds_together_leave_what_each_leaves_alone(interrupted, tmp_path):
  """Interrupted and resumed in between; the summary is over all seeds."""
  together, alone = tmp_path / "all", tmp_path / "alone"
  argv = [*COMMAND, "--seed=1", "--seeds=2", f"--output={together}"]
  assert interrupted(3, *argv) == 143
  assert run.main(argv) == 0
  assert run.main([*COMMAND, "--seed=2", f"--output={alone}"]) == 0
  assert sorted(p.name for p in together.glob("seed*")) == ["seed1", "seed2"]
  directory = together / "seed2"
  assert len(rows(alone / "metrics.csv")) > 50
  for row, expected in zip(
    *(rows(d / "metrics.csv") for d in (directory, alone)), strict=True
  ):
    for name, value in expected.items():
      if name in ROUNDED and value:
        assert float(row[name]) == pytest.approx(float(value), rel=1e-5), name
      else:
        assert row[name] == value, name
  assert rows(directory / "metrics.csv") != rows(together / "seed1" / "metrics.csv")
  weights = [np.load(d / "checkpoints" / "final.npz") for d in (directory, alone)]
  for name in [name for name in weights[1].files if weights[1][name].dtype.kind == "f"]:
    np.testing.assert_allclose(weights[0][name], weights[1][name], atol=1e-6)
  record = json.loads((directory / "config.json").read_text())
  assert (record["seed"], record["num_seeds"]) == (2, 1)

  summary, *each = (
    json.loads((path / "summary.json").read_text())
    for path in (together, together / "seed1", directory)
  )
  for name in ("evaluation_return", "training_return"):
    means = [one[name] for one in each]
    over_all = summary[name]
    assert over_all["value"] == pytest.approx(np.mean(means))
    assert min(means) <= over_all["low"] <= over_all["high"] <= max(means)
  assert list(summary["seeds"]) == ["1", "2"]
  solved = [one["solved_episode"] for one in each]
  assert summary["solved"] == sum(episode is not None for episode in solved)
