"""Rows and columns of a run's CSV files, and what a resumed run keeps of them."""

import math

import pytest

from explorax.experiments.recording import rows

LEARNER = ("loss", "bonus")


@pytest.fixture
def path(tmp_path):
  return tmp_path / rows.METRICS


def test_the_first_row_determines_the_columns(path, make_episode, capsys):
  file = rows.CsvFile(path, LEARNER)
  assert rows.read(path)["episode"].tolist() == []
  file(make_episode(1, episode_return=0.1 + 0.2, metrics={"regret": 1.0, "episode": 9}))
  file(make_episode(2, metrics={"regret": 2.0, "loss": 0.1, "late": 3.0}))
  file(make_episode(3, metrics={"late": 3.0}))
  file.close()
  columns = rows.read(path)
  assert [*columns] == [*rows.COLUMNS[rows.METRICS], "regret", "bonus", "loss"]
  assert columns["episode"].tolist() == [1, 2, 3]
  assert columns["env_steps"].tolist() == [10, 20, 30]
  assert columns["episode_return"][0] == 0.1 + 0.2  # Exactly.
  assert columns["policy"].tolist() == ["explorer", "exploiter", "explorer"]
  assert columns["loss"][1] == 0.1 and math.isnan(columns["loss"][0])
  warning = capsys.readouterr().err
  assert "late" in warning and warning.count("\n") == 1


def test_a_file_without_rows_has_its_columns(path):
  rows.CsvFile(path, LEARNER).close()
  assert [*rows.read(path)][-2:] == ["bonus", "loss"]


def test_rows_after_the_checkpoint_are_cut(path, make_episode):
  file = rows.CsvFile(path, LEARNER)
  for number in (1, 2, 3):
    file(make_episode(number, metrics={"a,b": 7.0, "loss": 1.0}))
  with open(path, "a") as half:
    half.write("4,40,")  # Of a disk that was full.
  assert rows.read(path)["episode"].tolist() == [1, 2, 3]
  for _ in range(2):
    resumed = rows.CsvFile(path, last_step=20)
    resumed(make_episode(3, metrics={"loss": 2.0}))
    resumed.close()
    columns = rows.read(path)
    assert columns["episode"].tolist() == [1, 2, 3]
    assert columns["loss"].tolist() == [1.0, 1.0, 2.0]
    assert columns["a,b"][1] == 7.0
