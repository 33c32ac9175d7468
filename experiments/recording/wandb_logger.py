"""The logger `--logger=wandb`."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import wandb


class Wandb:
  """Weights & Biases, with its own environment variables (WANDB_MODE=offline)."""

  def __init__(self, record: Mapping[str, Any], directory: pathlib.Path):
    self._step = 0
    self._run = wandb.init(
      project=os.environ.get("WANDB_PROJECT", "explorax"),
      name=f"{record['agent']} on {record['env']}, seed {record['seed']}",
      dir=str(directory),
      config=dict(record),
    )

  def __call__(self, scalars: Mapping[str, float], step: int, /) -> None:
    # W&B drops what comes after a later step, as actors' reports do.
    self._step = max(self._step, step)
    self._run.log(dict(scalars), step=self._step)

  def close(self) -> None:
    self._run.finish()
