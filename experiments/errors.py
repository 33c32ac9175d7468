"""Errors that the user of a run can fix, and hints on how to fix them."""

import difflib
from collections.abc import Sequence


class SetUpError(ValueError):
  """The run cannot start; the message is one sentence."""


class OutputError(Exception):
  """The run's directory cannot be read or written; the message is one sentence."""


def describe(error: BaseException) -> str:
  """`KeyError: 'x'`, or `MemoryError` if the exception has no message."""
  text = f"{type(error).__name__}: {error}".removesuffix(": ")
  if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
    text += "; use a smaller network, batch_size, n_step or replay_capacity"
  return text


def nearest(word: str, known: Sequence[str]) -> str:
  """' Did you mean …?' with the names in `known` that resemble `word`, or ''."""
  ends_alike = [name for name in known if name.rpartition(".")[2] == word]
  lower = {name.lower(): name for name in known}  # DQN resembles dqn.
  near = difflib.get_close_matches(word.lower(), lower, n=3, cutoff=0.6)
  close = ends_alike or [lower[name] for name in near]
  return f" Did you mean {' or '.join(close)}?" if close else ""
