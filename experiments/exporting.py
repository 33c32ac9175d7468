"""The work of `export`: reads what a run has learnt, and writes it."""

import pathlib

from explorax.experiments import output, trained, weights


def export(run: pathlib.Path, target: pathlib.Path) -> int:
  """Writes the weights of a run's directory to a file; returns the exit code."""
  found = trained.read(run)
  directory = output.RunDirectory.create(target.parent, may_hold_run=True)
  directory.write(
    target.name, lambda opened: weights.save(opened, found.arrays, found.record)
  )
  print(f"The weights of {found.source} are in {target}.")
  return 0
