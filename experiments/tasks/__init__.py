"""Tasks: parts of a large computation, in parallel on Ray, with saved results."""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.experiments.tasks import ray_execution

__getattr__ = lazy.modules(__name__, "ray_execution")
