"""Sweeps: agents over bsuite's experiments, as tasks on Ray (`sweep.py`)."""
