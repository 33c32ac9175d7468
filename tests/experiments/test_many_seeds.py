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


@pytest.fixture(scope="module")
def three(tmp_path_factory):
  """The directory of seeds 1 to 3, and that of seed 2 alone."""
  path = tmp_path_factory.mktemp("runs")
  flags = ["--seed=1", "--seeds=3", f"--output={path / 'all'}"]
  assert run.main([*COMMAND, *flags]) == 0
  assert run.main([*COMMAND, "--seed=2", f"--output={path / 'alone'}"]) == 0
  return path / "all", path / "alone"


def test_each_seed_leaves_what_it_leaves_alone(three):
  together, alone = three
  assert sorted(p.name for p in together.glob("seed*")) == ["seed1", "seed2", "seed3"]
  directory = together / "seed2"
  left = [{p.name.split(".")[0] for p in d.iterdir()} for d in (directory, alone)]
  assert left[0] == left[1]
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
  for name in weights[1].files:
    np.testing.assert_allclose(weights[0][name], weights[1][name], atol=1e-6)
  record = json.loads((directory / "config.json").read_text())
  assert (record["seed"], record["num_seeds"]) == (2, 1)


def test_they_resume_to_the_bit(three, interrupted, tmp_path):
  together, _ = three
  argv = [*COMMAND, "--seed=1", "--seeds=3", f"--output={tmp_path}"]
  assert interrupted(3, *argv) == 143
  assert run.main(argv) == 0
  for seed in ("seed1", "seed2", "seed3"):
    whole, parts = together / seed, tmp_path / seed
    assert rows(whole / "metrics.csv") == rows(parts / "metrics.csv")
    learnt = [np.load(path / "checkpoints/final.npz") for path in (whole, parts)]
    for name in learnt[0].files:
      assert learnt[0][name].tobytes() == learnt[1][name].tobytes(), name


def test_the_summary_is_over_all_seeds(three):
  together, _ = three
  summary = json.loads((together / "summary.json").read_text())
  each = [
    json.loads((together / f"seed{seed}" / "summary.json").read_text())
    for seed in (1, 2, 3)
  ]
  means = [one["mean_return_last_100"] for one in each]
  over_all = summary["mean_return_last_100"]
  assert over_all["value"] == pytest.approx(np.mean(means))
  assert min(means) <= over_all["low"] <= over_all["high"] <= max(means)
  assert list(summary["seeds"]) == ["1", "2", "3"]
  solved = [one["solved_episode"] for one in each]
  assert summary["solved"] == sum(episode is not None for episode in solved)
  assert (together / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_more_than_the_memory_holds_is_refused_before_the_start(tmp_path, capsys):
  output = tmp_path / "run"
  flags = ["--seeds=2", "--set=replay_capacity=1000000000", f"--output={output}"]
  assert run.main([*COMMAND, *flags]) == 2 and not output.exists()
  assert "2 seeds need about" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_ends_it(tmp_path, capsys):
  output = tmp_path / "run"
  output.mkdir()
  (output / "seed1").write_text("")
  flags = ["--seed=1", "--seeds=2", f"--output={output}"]
  assert run.main([*COMMAND, *flags]) == 1
  assert "seed1 cannot be written to" in capsys.readouterr().err
