"""A sweep's report: bsuite's scores, drawings, and how each number was computed."""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.experiments.reports import (
    bsuite_page,
    drawings,
    results,
    scores,
    template,
  )

__getattr__ = lazy.modules(
  __name__, "bsuite_page", "drawings", "results", "scores", "template"
)
