"""Loggers beside the files of a run: `--logger=wandb|MODULE:FUNCTION`."""

import contextlib
import importlib.util
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from explorax.experiments import errors, recording
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console

WANDB = "wandb"


class Logger(Protocol):
  """Receives the scalars of a run, those of TensorBoard."""

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    """Takes the scalars (tag → value) after so many environment steps."""

  def close(self) -> None:
    """The run has ended."""


# (content of config.json, directory of the run) → its logger.
MakeLogger = Callable[[Mapping[str, Any], pathlib.Path], Logger]


def find(name: str) -> MakeLogger:
  """The function that makes the logger.

  Args:
    name: `wandb`, or `module:function`.

  Raises:
    SetUpError: if it does not exist, or wandb is not installed.
  """
  if name == WANDB:
    if importlib.util.find_spec(WANDB) is None:
      raise errors.SetUpError("wandb is missing: install explorax[wandb].")
    return lambda *run: recording.wandb_logger.Wandb(*run)
  if ":" not in name:
    raise errors.SetUpError(
      f"--logger={name} is unknown.{errors.nearest(name, [WANDB])} Give wandb, or "
      "module:function for your own."
    )
  return settings_lib.import_attribute(name, "logger")


class Guarded:
  """A user's logger: if it raises, the run goes on without it, after one warning."""

  def __init__(
    self,
    name: str,
    make: MakeLogger,
    record: Mapping[str, Any],
    directory: pathlib.Path,
  ):
    self._name = name
    self._log: Logger | None = None
    with self._warning():
      self._log = make(record, directory)

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    if self._log is not None:
      with self._warning():
        self._log(scalars, step)

  def close(self) -> None:
    if self._log is not None:
      with self._warning():
        self._log.close()

  @contextlib.contextmanager
  def _warning(self) -> Iterator[None]:
    try:
      yield
    except Exception as error:
      self._log = None
      console.print_error(
        f"--logger={self._name} failed ({errors.describe(error)}); the run goes on "
        "without it."
      )
