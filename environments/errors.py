"""Errors of environments."""

import inspect
import pathlib
import sys
import traceback
from typing import Any


class NonFiniteError(FloatingPointError):
  """An environment returned a NaN or an infinity, or a value beyond float32."""


# Whose lines are not shown as the place of an error.
_OURS = {
  *("explorax", "jax", "jaxlib", "haiku", "numpy", "gymnasium", "dm_env", "chex"),
  *("optax", "ray", *sys.stdlib_module_names),
}


def users_line(error: BaseException) -> str:
  """`my_env.py:12`: an error's last line in the user's own code; '' without one."""
  line = ""
  for frame, number in traceback.walk_tb(error.__traceback__):
    spec = frame.f_globals.get("__spec__")  # Also of `python -m`, in `__main__`.
    module = str(spec.name if spec else frame.f_globals.get("__name__"))
    if module.partition(".")[0] not in _OURS:
      line = f"{pathlib.Path(frame.f_code.co_filename).name}:{number}"
  return line


def definition(function: Any) -> str:
  """`my_env.py:12`: where a function or class is defined; else its name."""
  if inspect.isclass(function):
    function = function.__init__
  code = getattr(inspect.unwrap(function), "__code__", None)
  if code is None:
    return str(function)
  return f"{pathlib.Path(code.co_filename).name}:{code.co_firstlineno}"
