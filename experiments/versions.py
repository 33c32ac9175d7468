"""The versions, machine and commit of a run, for `config.json`."""

import contextlib
import os
import pathlib
import platform
import subprocess
from importlib import metadata
from typing import Any

import jax

_PACKAGES = (
  *("explorax", "jax", "jaxlib", "dm-haiku", "optax", "numpy"),
  *("bsuite", "gymnasium", "ale-py"),
)


def collect() -> dict[str, Any]:
  """Versions of Python and of the main packages that are installed."""
  packages = {}
  for name in _PACKAGES:
    with contextlib.suppress(metadata.PackageNotFoundError):
      packages[name] = metadata.version(name)
  return {
    "python": platform.python_version(),
    "packages": packages,
    "platform": platform.platform(),
    "cpus": os.cpu_count(),
    "jax_devices": [f"{d.platform}:{d.device_kind}" for d in jax.devices()],
    "xla_flags": os.environ.get("XLA_FLAGS", ""),
    "git_commit": _git_commit(),
  }


def _git_commit() -> str | None:
  """The commit of this checkout, with `+` if files are modified; None of a copy."""
  folder = pathlib.Path(__file__).resolve().parents[1]
  command = ["git", "--no-optional-locks", "describe", "--always", "--abbrev=40"]
  command += ["--exclude=*", "--dirty=+"]
  if (folder / ".git").exists():
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
      return subprocess.check_output(command, cwd=folder, text=True).strip()
  return None
