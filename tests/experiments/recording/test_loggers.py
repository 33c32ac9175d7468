"""Loggers beside the files of a run, through the command."""

import importlib.util
import pathlib

import pytest

from explorax.experiments import run

BASE = ("--agent=fake", "--env=bsuite:catch/0", "--episodes=3", "--output=out")
LOGGER = """
class Lines:
  def __init__(self, config, directory):
    self.path, self.lines = directory / "lines", [config["agent"]]

  def __call__(self, scalars, step):
    self.lines.append(f"{step} {scalars['return']}")

  def close(self):
    self.path.write_text("\\n".join([*self.lines, "closed"]))
"""


@pytest.mark.usefixtures("stand_ins")
def test_a_logger_gets_the_scalars_and_is_closed(tmp_path):
  module = f"logger_of_{tmp_path.name}"
  (tmp_path / f"{module}.py").write_text(LOGGER)
  assert run.main([*BASE, f"--logger={module}:Lines"]) == 0
  lines = pathlib.Path("out/lines").read_text().splitlines()
  assert lines == ["fake", "10 1.0", "20 2.0", "30 3.0", "closed"]


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("method", ["__init__", "__call__", "close"])
def test_a_run_goes_on_without_a_logger_that_fails(tmp_path, method, capsys):
  module = f"{method.strip('_')}_fails_{tmp_path.name}"
  code = LOGGER + f"\n  def {method}(self, *args):\n    raise KeyError('broken')\n"
  (tmp_path / f"{module}.py").write_text(code)
  assert run.main([*BASE, f"--logger={module}:Lines"]) == 0
  err = capsys.readouterr().err
  assert f"--logger={module}:Lines" in err and err.count("\n") == 1
  assert pathlib.Path("out/summary.json").exists()


@pytest.mark.usefixtures("stand_ins")
def test_wandb_offline(monkeypatch):
  if importlib.util.find_spec("wandb") is None:
    pytest.skip("wandb is not installed")
  monkeypatch.setenv("WANDB_MODE", "offline")
  monkeypatch.setenv("WANDB_SILENT", "true")
  assert run.main([*BASE, "--logger=wandb"]) == 0
  (file,) = pathlib.Path("out/wandb").glob("offline-run-*/run-*.wandb")
  content = file.read_bytes()
  assert b"episode/length" in content and b"fake on bsuite:catch/0, seed 0" in content


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(
  ("logger", "names"),
  [("wandbb", "wandb?"), ("no_module:make", "no_module:make"), ("json:dumpz", "dumps")],
)
def test_an_unknown_logger_is_refused(logger, names, capsys):
  assert run.main([*BASE, f"--logger={logger}"]) == 2
  err = capsys.readouterr().err
  assert names in err and err.count("\n") == 1
  assert not pathlib.Path("out").exists()
