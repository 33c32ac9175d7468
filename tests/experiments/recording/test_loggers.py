"""Loggers beside the files of a run, through the command."""

import csv
import pathlib

import pytest

from explorax.experiments import run

LOGGER = """
class Lines:
  def __init__(self, config, directory):
    self.path, self.lines = directory / "lines", [str(config["seed"])]

  def __call__(self, scalars, step):
    self.lines.append(f"{step} {scalars['return']}")

  def close(self):
    self.path.write_text("\\n".join([*self.lines, "closed"]))
"""


@pytest.fixture
def base(agents):
  episodes = ("--env=bsuite:catch/0", "--episodes=3", "--output=out")
  return [f"--agent={agents}:Random", *episodes]


def test_a_logger_gets_the_scalars_and_is_closed(base, tmp_path):
  module = f"logger_of_{tmp_path.name}"
  (tmp_path / f"{module}.py").write_text(LOGGER)
  assert run.main([*base, f"--logger={module}:Lines"]) == 0
  with open("out/metrics.csv", newline="") as file:
    rows = [
      f"{row['env_steps']} {float(row['episode_return'])}"
      for row in csv.DictReader(file)
    ]
  lines = pathlib.Path("out/lines").read_text().splitlines()
  assert lines == ["0", *rows, "closed"] and len(rows) == 3


def test_a_logger_that_fails_ends_the_run(base, tmp_path, capsys):
  module = f"fails_{tmp_path.name}"
  code = LOGGER + "\n  def close(self):\n    raise KeyError('broken')\n"
  (tmp_path / f"{module}.py").write_text(code)
  assert run.main([*base, f"--logger={module}:Lines"]) > 0
  err = capsys.readouterr().err
  assert "KeyError: 'broken'" in err and err.count("\n") == 1


@pytest.mark.parametrize(
  ("logger", "names"), [("wandbb", "wandb?"), ("json:dumpz", "dumps")]
)
def test_an_unknown_logger_is_refused(base, logger, names, capsys):
  assert run.main([*base, f"--logger={logger}"]) == 2
  err = capsys.readouterr().err
  assert names in err and err.count("\n") == 1
  assert not pathlib.Path("out").exists()
