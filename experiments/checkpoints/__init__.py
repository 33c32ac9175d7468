"""Checkpoints: a run's state on disk, complete or absent. Independent of runners."""
