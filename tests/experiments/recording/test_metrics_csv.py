"""Rows and columns of `metrics.csv`, and what a resumed run keeps of them."""

import csv

import pytest

from explorax.experiments import errors, output
from explorax.experiments.recording import metrics_csv


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "run")


def read(directory, name="metrics.csv") -> list[dict[str, str]]:
  with open(directory.path / name, newline="") as file:
    return list(csv.DictReader(file))


def test_each_episode_is_on_disk_at_once(directory, make_episode):
  writer = metrics_csv.MetricsCsv(directory)
  assert read(directory) == []
  for number in (1, 2):
    writer.write(make_episode(number, episode_return=number + 0.1 + 0.2))
    rows = read(directory)
    assert len(rows) == number
    assert tuple(rows[-1]) == metrics_csv.EPISODE_COLUMNS
    assert rows[-1]["env_steps"] == str(10 * number)
    assert float(rows[-1]["episode_return"]) == number + 0.1 + 0.2  # Exactly.
  assert [row["policy"] for row in rows] == ["explorer", "exploiter"]


def test_late_metrics_become_columns_on_the_right(directory, make_episode):
  writer = metrics_csv.MetricsCsv(directory)
  writer.write(make_episode(1, metrics={"regret": 1.0}))
  writer.write(make_episode(2, metrics={"regret": 2.0, "loss": 0.1, "bonus": 0.2}))
  writer.write(make_episode(3, metrics={"loss": 0.05}))
  writer.close()
  rows = read(directory)
  assert tuple(rows[0]) == (*metrics_csv.EPISODE_COLUMNS, "regret", "bonus", "loss")
  assert [row["regret"] for row in rows] == ["1", "2", ""]
  assert [row["loss"] for row in rows] == ["", "0.1", "0.05"]
  assert [row["episode"] for row in rows] == ["1", "2", "3"]


@pytest.fixture
def num_rows(directory, make_episode):
  """The rows at a checkpoint before the third row, which has a new column."""
  writer = metrics_csv.MetricsCsv(directory)
  for number in (1, 2):
    writer.write(make_episode(number, metrics={"regret": 1.0}))
  writer.sync()
  writer.write(make_episode(3, metrics={"loss": 1.0}))
  writer.close()
  return 2


def test_rows_after_the_checkpoint_are_cut(directory, make_episode, num_rows):
  resumed = metrics_csv.MetricsCsv(directory, num_rows=num_rows)
  assert [e.episode for e in resumed.rows()] == [1, 2]
  assert [e.metrics for e in resumed.rows()] == [{"regret": 1.0}] * 2
  resumed.write(make_episode(3, metrics={}))
  resumed.close()
  rows = read(directory)
  assert tuple(rows[0]) == (*metrics_csv.EPISODE_COLUMNS, "regret", "loss")
  assert [row["episode"] for row in rows] == ["1", "2", "3"]


@pytest.mark.parametrize(
  ("old", "new"),
  [
    (b"episode_return", b"reward"),
    (b"\n2,20", b"\n2,2O"),
    (b"\n2,20", b"\n2"),
    (b"\n", b""),
  ],
)
def test_a_file_that_cannot_be_resumed_is_named(directory, num_rows, old, new):
  path = directory.path / "metrics.csv"
  path.write_bytes(path.read_bytes().replace(old, new))
  with pytest.raises(errors.OutputError, match=r"metrics\.csv"):
    metrics_csv.MetricsCsv(directory, num_rows=num_rows)
