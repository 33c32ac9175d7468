"""Compiled programs that later processes reuse, in JAX's persistent cache."""

import contextlib
import os
import pathlib
import sys
import warnings

_FOLDER = "JAX_COMPILATION_CACHE_DIR"
_SETTINGS = {
  "JAX_COMPILATION_CACHE_MAX_SIZE": f"{2**30}",  # Bytes.
  # Programs that compile almost as fast as they load are not kept.
  "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
}


def keep_programs() -> None:
  """Makes JAX keep compiled programs for later processes, if it is not imported yet.

  It sets JAX's environment variables, which processes that are started here inherit,
  unless they name a folder already or the user's cannot be written.
  """
  # jaxlib before 0.10 may crash on macOS when it loads a large program.
  if os.environ.get(_FOLDER) or sys.platform != "linux":
    return
  root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  folder = pathlib.Path(root, "explorax", "jax")
  with contextlib.suppress(OSError):
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
  if os.access(folder, os.W_OK):
    os.environ[_FOLDER] = str(folder)
    for name, value in _SETTINGS.items():
      os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation")
