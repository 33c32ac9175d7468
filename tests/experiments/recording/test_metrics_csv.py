import csv

import pytest

from explorax.experiments import errors, output
from explorax.experiments.recording import metrics_csv


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "run")


def read(directory) -> list[dict[str, str]]:
  with open(directory.path / "metrics.csv", newline="") as file:
    return list(csv.DictReader(file))


def test_each_episode_is_on_disk_at_once(directory, make_episode):
  writer = metrics_csv.MetricsCsv(directory)
  assert read(directory) == []
  for number in (1, 2):
    writer.write(make_episode(number))
    rows = read(directory)
    assert len(rows) == number
    assert tuple(rows[-1]) == metrics_csv.EPISODE_COLUMNS
    assert rows[-1]["env_steps"] == str(10 * number)
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


def test_returns_are_exact(directory, make_episode):
  writer = metrics_csv.MetricsCsv(directory)
  writer.write(make_episode(1, episode_return=0.1 + 0.2))
  assert float(read(directory)[0]["episode_return"]) == 0.1 + 0.2


def test_the_episodes_of_evaluations(directory, make_evaluation):
  columns = metrics_csv.EVALUATION_COLUMNS
  writer = metrics_csv.MetricsCsv(directory, "evaluation.csv", columns)
  for episode in make_evaluation(30, [1.5, 2.5]).episodes:
    writer.write(episode._replace(metrics={"coverage": 0.25 * episode.episode}))
  with open(directory.path / "evaluation.csv", newline="") as file:
    rows = list(csv.reader(file))
  assert rows == [
    ["env_steps", "episode", "episode_return", "episode_length", "coverage"],
    ["30", "1", "1.5", "10", "0.25"],
    ["30", "2", "2.5", "10", "0.5"],
  ]
  assert not (directory.path / "metrics.csv").exists()


def test_a_resumed_file_loses_the_rows_and_columns_after_its_checkpoint(
  directory, make_episode
):
  writer = metrics_csv.MetricsCsv(directory)
  writer.write(make_episode(1, metrics={"regret": 1.0}))
  saved = writer.save()
  before = (directory.path / "metrics.csv").read_bytes()
  writer.write(make_episode(2, metrics={"loss": 1.0}))
  writer.close()
  resumed = metrics_csv.MetricsCsv(directory, resumed=saved)
  assert (directory.path / "metrics.csv").read_bytes() == before
  (episode,) = resumed.resumed_rows()
  assert episode.episode == 1 and episode.metrics == {"regret": 1.0}


@pytest.mark.parametrize(
  ("was", "now", "words"),
  [
    ("episode_return", "reward", "column 'episode_return' is 'reward'"),
    (",regret", "", "column 'regret' is missing"),
    ("1,10,", "1,1O,", "line 2 has '1O' as its env_steps"),
    ("1,10,", "10,", "line 2 has 8 cells of 9"),
    ("2,20,", "", "1 rows of at least 2"),
  ],
)
def test_a_file_that_was_changed_is_named(directory, make_episode, was, now, words):
  writer = metrics_csv.MetricsCsv(directory)
  for number in (1, 2):
    writer.write(make_episode(number, metrics={"regret": 1.0}))
  saved = writer.save()
  writer.close()
  path = directory.path / "metrics.csv"
  text = path.read_text()
  assert was in text
  if now or was.startswith(","):
    path.write_text(text.replace(was, now, 1))
  else:  # The whole line.
    path.write_text("".join(text.splitlines(keepends=True)[:2]))
  with pytest.raises(
    errors.OutputError, match="was changed since it was written"
  ) as caught:
    metrics_csv.MetricsCsv(directory, resumed=saved)
  assert words in str(caught.value)


def test_rows_that_were_changed_are_not_resumed(directory, make_episode):
  writer = metrics_csv.MetricsCsv(directory)
  for number in (1, 2, 3):
    writer.write(make_episode(number))
  saved = writer.save()
  writer.write(make_episode(4, metrics={"later": 1.0}))
  writer.close()
  path = directory.path / "metrics.csv"
  content = path.read_text(encoding="utf-8")
  for old, new in (("\n2,20,2.0", "\n2,20,7.0"), ("\n2,20", "\n3,20")):
    path.write_text(content.replace(old, new), encoding="utf-8")
    with pytest.raises(errors.OutputError, match="its rows are other ones"):
      metrics_csv.MetricsCsv(directory, resumed=saved)
  path.write_text(content, encoding="utf-8")
  resumed = metrics_csv.MetricsCsv(directory, resumed=saved)
  assert len(list(resumed.resumed_rows())) == 3
  resumed.close()
