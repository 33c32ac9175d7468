"""Modules of a package that are imported when they are first used."""

import importlib
from collections.abc import Callable
from typing import Any


def modules(package: str, *names: str) -> Callable[[str], Any]:
  """The `__getattr__` of a package that imports these of its modules on first use.

  They need packages that may be absent, or take long to import. Others write
  `from explorax import environments` and `environments.bsuite_sweeps.groups()`; what
  such a module needs, it imports at its top.
  """

  def get(name: str) -> Any:
    if name in names:
      return importlib.import_module(f"{package}.{name}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")

  return get
