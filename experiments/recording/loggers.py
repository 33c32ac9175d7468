"""Loggers of a run beside its CSV files: TensorBoard, wandb and a user's own."""

import math
import os
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from tensorboardX import event_file_writer
from tensorboardX.proto import event_pb2, summary_pb2

from explorax import notation
from explorax.experiments import errors, output
from explorax.experiments.runners import common

WANDB = "wandb"
# Seconds between two episodes in TensorBoard, which draws a thousand points of a curve
# at most: a row takes 0.2 ms, and a run may end hundreds of episodes a second.
_PERIOD = 0.005


class Logger(Protocol):
  """Receives the scalars of each row of a run."""

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    """Takes the scalars (tag → value) after so many environment steps."""

  def close(self) -> None:
    """The run has ended."""


def find(name: str) -> Callable[[Mapping[str, Any], pathlib.Path], Logger]:
  """The function that makes the logger `wandb`, or `module:function`.

  Its arguments are the content of config.json, and the directory of the run.

  Raises:
    ValueError: if it does not exist.
  """
  if name == WANDB:
    return Wandb
  if ":" not in name:
    raise errors.SetUpError(
      f"--logger={name} is unknown.{notation.nearest(name, [WANDB])} Give wandb, or "
      "module:function for your own."
    )
  return notation.import_attribute(name, "logger")


class TensorBoard:
  """Writes scalars into an event file of a run's directory.

  It uses tensorboardX's writer of files and not its `SummaryWriter`, which writes each
  scalar by itself in another thread: that takes ten times as long, and on a full disk
  the thread ends and the run waits forever.
  """

  def __init__(
    self, directory: pathlib.Path, last_step: int | None = None, num_seeds: int = 1
  ):
    """Creates the file.

    Args:
      directory: of the run.
      last_step: of the events that a resumed run keeps: TensorBoard hides later ones,
        which the run writes again. None deletes earlier files.
      num_seeds: that the process trains, each with a writer.
    """
    self._path = directory / "events"
    earlier = [*directory.glob("events.out.tfevents.*")]
    if last_step is None:
      for path in earlier:
        path.unlink()
    with output.write_errors(self._path):
      suffix = f".{len(earlier)}"
      self._writer = event_file_writer.EventsWriter(str(self._path), suffix)
    self._period, self._next = _PERIOD * num_seeds, 0.0
    if last_step is not None:
      started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._write(last_step + 1, session_log=started)

  def is_due(self, row: Any) -> bool:
    """Whether to give it this row; after an episode, the next is due a period later."""
    if isinstance(row, common.Episode):
      if (now := time.monotonic()) < self._next:
        return False
      self._next = now + self._period
    return True

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    values = [
      summary_pb2.Summary.Value(tag=tag, simple_value=value)
      for tag, value in scalars.items()
    ]
    self._write(step, summary=summary_pb2.Summary(value=values))

  def close(self) -> None:
    with output.write_errors(self._path):
      self._writer.close()

  def _write(self, step: int, **content: Any) -> None:
    event = event_pb2.Event(wall_time=time.time(), step=step, **content)
    with output.write_errors(self._path):
      self._writer.write_event(event)


class Wandb:
  """Weights & Biases, with its own environment variables (WANDB_MODE=offline)."""

  def __init__(self, record: Mapping[str, Any], directory: pathlib.Path):
    import wandb

    self._step = 0
    self._run = wandb.init(
      project=os.environ.get("WANDB_PROJECT", "explorax"),
      name=f"{record['agent']} on {record['env']}, seed {record['seed']}",
      dir=str(directory),
      config=dict(record),
    )

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    # W&B drops what comes after a later step.
    self._step = max(self._step, step)
    self._run.log(dict(scalars), step=self._step)

  def close(self) -> None:
    self._run.finish()


def scalars(
  row: common.Episode | common.LogRow | common.Evaluation,
) -> dict[str, float]:
  """Tag → value of a row.

  The return of a training episode is also under its policy, and values of an evaluation
  are means over its episodes.
  """
  if isinstance(row, common.Episode):
    return {
      "return": row.episode_return,
      f"return/{row.policy}": row.episode_return,
      "episode/length": row.episode_length,
      "episode/number": row.episode,
      "speed/learner_updates": row.learner_updates,
      "speed/steps_per_second": row.steps_per_second,
      **{f"metrics/{name}": value for name, value in row.metrics.items()},
    }
  if isinstance(row, common.LogRow):
    return {
      "learner/updates": row.learner_updates,
      "learner/steps_per_second": row.steps_per_second,
      **{f"learner/{name}": value for name, value in row.metrics.items()},
    }
  metrics = [episode.metrics for episode in row.episodes]
  values = {"return": row.mean_return, "length": row.mean_length}
  for name in sorted(metrics[0]):
    mean = np.mean([x.get(name, math.nan) for x in metrics])
    values[f"metrics/{name}"] = float(mean)
  return {f"evaluation/{name}": value for name, value in values.items()}
