"""Checkpoints: what a run needs to resume, complete or absent; nothing of a runner."""
