"""Tests how commands and functions respond to hundreds of bad inputs and damaged files.

  python benchmarks/fuzz.py                # all cases, in a minute or two
  python benchmarks/fuzz.py --part=5       # every fifth case
  python benchmarks/fuzz.py --seed=1       # damages other bytes
  python benchmarks/fuzz.py --only='steps' # only cases whose names match

All commands are called in this process, each in a directory of its own. Outcomes:

  one line   an error message of one sentence that names the bad value or file
  legal      accepted correctly, or NaN from a compiled program, which cannot raise
  traceback  an unexpected exception, which does not tell the user what to do
  silent     accepted wrongly, or an error that does not name the bad value or file

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

# Set before jax is imported. The persistent cache avoids repeated compilation.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

ONE_LINE, LEGAL, TRACEBACK, SILENT = OUTCOMES = (
  "one line",
  "legal",
  "traceback",
  "silent",
)
# Texts in the reports of unexpected exceptions, by a command and by Python.
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
    group: the row in the table of counts.
    name: the name of the case.
    attempt: runs the case in its own working directory.
    names: a regular expression that the error message must match.
    may_pass: whether accepting the input is correct, too.
  """

  group: str
  name: str
  attempt: Callable[[], Seen]
  names: str
  may_pass: bool = False


def command(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> Seen:
  """Calls a command in this process and captures its stderr."""
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
  """The outcome of a case, given its result."""
  if not seen.expected:
    return TRACEBACK
  if re.search(case.names, seen.text):
    return LEGAL if seen.text == "NaN" else ONE_LINE
  return LEGAL if case.may_pass and not seen.refused else SILENT


def attempt(case: Case) -> tuple[str, Seen]:
  """Runs a case in an empty directory; returns its outcome and its result."""
  before = os.getcwd()
  with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
      seen = case.attempt()
    finally:
      os.chdir(before)
  return judge(case, seen), seen


def run(cases: Sequence[Case]) -> dict[tuple[str, str], int]:
  """Runs the cases and prints the bad ones; returns counts by group and outcome."""
  counts: dict[tuple[str, str], int] = {}
  for case in cases:
    outcome, seen = attempt(case)
    counts[case.group, outcome] = counts.get((case.group, outcome), 0) + 1
    if outcome in (TRACEBACK, SILENT):
      said = " ".join(seen.text.split())[-300:]
      print(f"{outcome}: {case.group}: {case.name}: {said or 'nothing'}", flush=True)
  return counts


def table(counts: dict[tuple[str, str], int]) -> str:
  """The counts as a table: a line for each group, and a line of sums."""
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
  parser.add_argument("--seed", type=int, default=0, help="of the random damage")
  parser.add_argument("--part", type=int, default=1, help="run every PART-th case")
  parser.add_argument("--only", default="", help="a regular expression of names")
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
