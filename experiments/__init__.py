"""Runs: the commands, and what they do."""
