"""Resolves `module:attribute` names of users: agents, figures, parts of agents."""

import importlib
import os
import sys
import types
from typing import Any

from explorax.experiments import errors


def module(name: str) -> types.ModuleType:
  """Imports a module that is installed or in the current directory."""
  directory = os.getcwd()
  if directory not in sys.path and "" not in sys.path:
    sys.path.append(directory)  # At the end, so that it hides nothing.
  return importlib.import_module(name)


def attribute(name: str, what: str) -> Any:
  """Resolves `module:attribute`.

  Args:
    name: as the user wrote it.
    what: the kind of object, for errors: `agent`.

  Raises:
    SetUpError: if there is no such module or attribute, or if the import raises an
      error.
  """
  module_name, _, own_name = name.partition(":")
  try:
    found = module(module_name)
  except (Exception, SystemExit) as error:
    raise errors.SetUpError(
      f"the {what} {name!r} cannot be imported ({type(error).__name__}: {error}); its "
      f"module must be installed, or be in {os.getcwd()}."
    ) from error
  if not hasattr(found, own_name):
    raise errors.SetUpError(
      f"the {what} {name!r} does not exist: {module_name} has no {own_name!r}."
      f"{errors.nearest(own_name, list(vars(found)))}"
    )
  return getattr(found, own_name)
