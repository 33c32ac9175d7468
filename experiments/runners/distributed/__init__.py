"""The `distributed` runner: replay, learner, actors and evaluator on Ray."""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.experiments.runners.distributed import (
    driver,
    memory_shard,
    reverb_shard,
  )

__getattr__ = lazy.modules(__name__, "driver", "memory_shard", "reverb_shard")
