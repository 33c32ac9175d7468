"""Free memory of the machine."""

import math
import pathlib


def available() -> float:
  """Bytes that Linux can give without swapping; infinite on other systems."""
  try:
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["MemAvailable"].split()[0]) * 1024
  except (OSError, KeyError, ValueError):
    return math.inf
