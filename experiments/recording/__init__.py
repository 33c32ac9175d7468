"""The files of a run, and its progress display."""
