"""Resolves `module:attribute` names of users: agents, figures, parts of agents."""

import importlib
import os
import sys
from typing import Any

from explorax.experiments import errors


def attribute(name: str, what: str) -> Any:
  """Resolves `module:attribute`; the module is installed or in the current directory.

  Args:
    name: as the user wrote it.
    what: the kind of object, for errors: `agent`.

  Raises:
    SetUpError: if there is no such module or attribute, or if the import raises an
      error.
  """
  module_name, _, attribute_name = name.partition(":")
  directory = os.getcwd()
  if directory not in sys.path and "" not in sys.path:
    sys.path.append(directory)  # At the end, so that it hides nothing.
  try:
    module = importlib.import_module(module_name)
  except (Exception, SystemExit) as error:
    raise errors.SetUpError(
      f"the {what} {name!r} cannot be imported ({type(error).__name__}: {error}); its "
      f"module must be installed, or be in {directory}."
    ) from error
  if not hasattr(module, attribute_name):
    raise errors.SetUpError(
      f"the {what} {name!r} does not exist: {module_name} has no {attribute_name!r}."
      f"{errors.nearest(attribute_name, list(vars(module)))}"
    )
  return getattr(module, attribute_name)
