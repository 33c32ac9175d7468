"""How long the distributed runner takes to replace a process that was killed."""

import pathlib
import tempfile

import bench
import soak

_ENDLESS = 10_000_000  # Environment steps.


def measure_recovery(quick: bool = False) -> list[bench.Row]:
  """Seconds until a killed process, or after the board's death the run, is replaced."""
  del quick
  with tempfile.TemporaryDirectory() as folder:
    run = soak.Run(pathlib.Path(folder) / "run", f"--steps={_ENDLESS}")
    try:
      rows = []
      for role in soak.ROLES:
        run.wait(30.0)
        rows.append({"killed": role, "replaced_s": run.kill(role)})
    finally:
      run.end()
  return rows


TABLES = (bench.Table("Seconds after a kill", measure_recovery),)
