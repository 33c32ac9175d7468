"""The `distributed` runner: replay, learner, actors and evaluator on Ray."""

from explorax.experiments.runners.distributed.driver import Replacement, check, run

__all__ = ["Replacement", "check", "run"]
