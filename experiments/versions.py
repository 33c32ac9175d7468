"""The versions, machine and commit of a run, for `config.json`."""

import os
import pathlib
import platform
import subprocess
import sys
from importlib import metadata
from typing import Any

_PACKAGES = (
  "explorax",
  "jax",
  "jaxlib",
  "dm-haiku",
  "optax",
  "chex",
  "dm-env",
  "dm-acme",
  "dm-reverb",
  "tensorflow",
  "bsuite",
  "gymnasium",
  "ale-py",
  "numpy",
)


def collect() -> dict[str, Any]:
  """Versions of Python and of the main packages (null: not installed).

  It includes XLA's flags, which can choose another runtime, and JAX's devices if this
  process has imported JAX.
  """
  jax = sys.modules.get("jax")
  devices = jax.devices() if jax is not None else []
  return {
    "python": platform.python_version(),
    "packages": {name: _version(name) for name in _PACKAGES},
    "platform": platform.platform(),
    "cpus": os.cpu_count(),
    "xla_flags": os.environ.get("XLA_FLAGS", ""),
    "jax_devices": [f"{d.platform}:{d.device_kind}" for d in devices],
    "git_commit": git_commit(pathlib.Path(__file__).resolve()),
  }


def git_commit(file: pathlib.Path) -> str | None:
  """The commit of the checkout that contains `file`, with `+` if files are modified.

  None for an installed copy: a repository around its virtual environment is
  unrelated.
  """
  if not _git(file, "ls-files", "--error-unmatch", file.name):
    return None
  commit = _git(file, "rev-parse", "HEAD")
  changed = _git(file, "status", "--porcelain", "--untracked-files=no")
  return commit + "+" if commit and changed else commit


def _git(file: pathlib.Path, *arguments: str) -> str | None:
  command = ["git", "-C", str(file.parent), *arguments]
  try:
    done = subprocess.run(command, capture_output=True, text=True, timeout=10)
  except (OSError, subprocess.TimeoutExpired):
    return None
  return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
  try:
    return metadata.version(package)
  except metadata.PackageNotFoundError:
    return None
