"""Runs: the commands, and what they do.

The modules below are the work of the commands, imported when it starts: help and
mistyped commands answer at once.
"""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.experiments import (
    config_file,
    running,
    trained,
  )

__getattr__ = lazy.modules(
  __name__,
  "config_file",
  "running",
  "trained",
)
