"""Hundreds of bad inputs and damaged files, and the outcome of each.

  python benchmarks/fuzz.py                # all of them, in a minute or two
  python benchmarks/fuzz.py --part=5       # every fifth
  python benchmarks/fuzz.py --seed=1       # damages other bytes
  python benchmarks/fuzz.py --only='steps' # those whose names match

Commands are called in this one process, each in a directory of its own. Outcomes:

  one line   refused or reported, in one sentence that names what is wrong
  legal      accepted where that is right, or NaN where nothing could be refused
  traceback  an exception of the program's, which does not tell its user what to do
  silent     accepted, or refused without naming what is wrong

The exit code is 1 if there is a traceback or a silent case.
"""

import argparse
import contextlib
import io
import os
import pathlib
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Before anything imports jax: what is compiled once is not compiled again.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

ONE_LINE, LEGAL, TRACEBACK, SILENT = OUTCOMES = (
  "one line",
  "legal",
  "traceback",
  "silent",
)
# How a command reports exceptions that it does not expect, and how Python does.
_UNEXPECTED = ("; --debug shows", "Traceback (most recent call last)")
_SENTENCE = "explorax: "


class Seen(NamedTuple):
  """The result of a case.

  Attributes:
    refused: whether there was an error.
    text: the complete error output.
    expected: whether the error is of a type meant for users.
  """

  refused: bool
  text: str
  expected: bool = True


class Case(NamedTuple):
  """A bad input or a damaged file.

  Attributes:
    group: the group in the table of counts.
    name: of the case.
    attempt: runs the case in its own working directory.
    names: a regular expression that the error message must match.
    may_pass: whether it may be accepted as well.
  """

  group: str
  name: str
  attempt: Callable[[], Seen]
  names: str
  may_pass: bool = False


def command(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> Seen:
  """Calls a command in this process, and keeps what it writes to stderr."""
  errors = io.StringIO()
  with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
    try:
      code = main(argv)
    except (Exception, SystemExit) as error:
      return Seen(True, f"{type(error).__name__}: {error}", expected=False)
  text = errors.getvalue()
  lines = [line for line in text.splitlines() if line.strip()]
  is_prose = all(line.startswith(_SENTENCE) for line in lines)
  return Seen(code != 0, text, is_prose and not any(x in text for x in _UNEXPECTED))


def call(function: Callable[[], object]) -> Seen:
  """Calls a function that should refuse its arguments, or return NaN."""
  import jax
  import numpy as np

  try:
    returned = jax.tree.leaves(function())
  except (TypeError, ValueError) as error:
    return Seen(True, str(error), "\n" not in str(error))
  except Exception as error:
    return Seen(True, f"{type(error).__name__}: {error}", expected=False)
  is_nan = any(np.isnan(np.asarray(x, np.float64)).any() for x in returned)
  return Seen(False, "NaN" if is_nan else "")


def judge(case: Case, seen: Seen) -> str:
  """The outcome."""
  if not seen.expected:
    return TRACEBACK
  if re.search(case.names, seen.text):
    return LEGAL if seen.text == "NaN" else ONE_LINE
  return LEGAL if case.may_pass and not seen.refused else SILENT


def attempt(case: Case) -> tuple[str, Seen]:
  """Runs a case in an empty directory: its outcome, and what was seen."""
  before = os.getcwd()
  with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
      seen = case.attempt()
    finally:
      os.chdir(before)
  return judge(case, seen), seen


def run(cases: Sequence[Case]) -> dict[tuple[str, str], int]:
  """Runs the cases; prints the bad ones, and counts by group and outcome."""
  counts: dict[tuple[str, str], int] = {}
  for case in cases:
    outcome, seen = attempt(case)
    counts[case.group, outcome] = counts.get((case.group, outcome), 0) + 1
    if outcome in (TRACEBACK, SILENT):
      said = " ".join(seen.text.split())[-300:]
      print(f"{outcome}: {case.group}: {case.name}: {said or 'nothing'}", flush=True)
  return counts


def table(counts: dict[tuple[str, str], int]) -> str:
  """The counts, a line for each group and one for all."""
  groups = list(dict.fromkeys(group for group, _ in counts))
  lines = [("", *OUTCOMES)]
  for group in groups:
    lines.append((group, *(str(counts.get((group, x), 0)) for x in OUTCOMES)))
  sums = [sum(n for (_, x), n in counts.items() if x == each) for each in OUTCOMES]
  lines.append(("all", *map(str, sums)))
  return "\n".join(
    f"{first:<24}" + "".join(f"{cell:>11}" for cell in rest) for first, *rest in lines
  )


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--seed", type=int, default=0, help="of what is damaged where")
  parser.add_argument("--part", type=int, default=1, help="every so many-th case")
  parser.add_argument("--only", default="", help="cases whose names match")
  args = parser.parse_args(argv)
  import fuzz_arguments
  import fuzz_corruptions
  import fuzz_inputs

  with tempfile.TemporaryDirectory() as folder:
    rng = random.Random(args.seed)
    cases = [
      *fuzz_inputs.cases(),
      *fuzz_arguments.cases(),
      *fuzz_corruptions.cases(pathlib.Path(folder), rng),
    ]
    cases = [case for case in cases if re.search(args.only, case.name)]
    counts = run(cases[:: args.part])
  print(table(counts))
  return 1 if any(outcome in (TRACEBACK, SILENT) for _, outcome in counts) else 0


if __name__ == "__main__":
  sys.exit(main())
