"""The files of a run, and its progress display."""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.experiments.recording import (
    bsuite_csv,
    events,
    gif,
    progress,
    wandb_logger,
  )

__getattr__ = lazy.modules(
  __name__, "bsuite_csv", "events", "gif", "progress", "wandb_logger"
)
