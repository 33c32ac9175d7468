"""Checkpoints: what a run needs to go on, whole or not there; nothing of a runner."""
