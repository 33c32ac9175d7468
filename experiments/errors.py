"""Errors that the user of a run can fix, and hints on how to fix them."""

import importlib.util


class SetUpError(ValueError):
  """The run cannot start; the message is one sentence."""


class OutputError(Exception):
  """The run's directory cannot be read or written; the message is one sentence."""


# Package that is imported → the extra that has it.
_EXTRAS = {
  **dict.fromkeys(("acme", "gymnasium", "optax", "tensorboardX"), "agents"),
  **dict.fromkeys(("markdown_it", "matplotlib"), "plots"),
  **dict.fromkeys(("bsuite", "pandas"), "bsuite"),
  **dict.fromkeys(("ale_py", "cv2"), "atari"),
  "ray": "distributed",
  "wandb": "wandb",
  "PIL": "video",
}


def check_installed(package: str) -> None:
  """Raises a ModuleNotFoundError, without importing the package, which may be slow."""
  if importlib.util.find_spec(package) is None:
    raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def describe(error: BaseException) -> str:
  """`KeyError: 'x'`, or `MemoryError` if the exception has no message."""
  text = f"{type(error).__name__}: {error}".removesuffix(": ")
  if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
    text += "; use a smaller network, batch_size, n_step or replay_capacity"
  return text


def sentence(error: BaseException) -> str:
  """The line that ends a command, with the notes of the error.

  An error in the user's code has Python's type and text, and the user's file and line.
  """
  if isinstance(error, SetUpError | OutputError):
    return str(error)
  if isinstance(error, ModuleNotFoundError):
    extra = _EXTRAS.get(str(error.name).partition(".")[0])
    if extra is not None:
      return f"{error.name} is missing: install explorax[{extra}]."
  from explorax.environments import errors as environment_errors

  line = environment_errors.users_line(error)
  if line or not isinstance(error, ValueError | TypeError | ImportError | OSError):
    notes = getattr(error, "__notes__", ["--debug shows the traceback"])
    text = describe(error).removesuffix(".") + (f" ({line})" if line else "")
    ours = [note for note in notes if "\n" not in note]  # JAX's has several lines.
    return "; ".join([text, *ours]) + "."
  return str(error)
