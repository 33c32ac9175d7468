"""A sample of bad inputs and damaged files: each is refused or legal."""

import collections
import sys

import pytest


@pytest.fixture
def fuzz(load, monkeypatch):
  """The module, under the name by which its parts import it."""
  module = load("fuzz")
  monkeypatch.setitem(sys.modules, "fuzz", module)
  monkeypatch.syspath_prepend(module.__file__.rpartition("/")[0])
  yield module
  for name in [n for n in sys.modules if n.startswith("fuzz_")]:
    del sys.modules[name]


def test_a_sample_leaves_no_traceback_and_is_not_silent(fuzz, capsys):
  assert fuzz.main(["--part=9", "--seed=1"]) == 0, capsys.readouterr().out
  last = capsys.readouterr().out.splitlines()[-1].split()
  assert int(last[1]) > 80 and last[3:] == ["0", "0"]


def test_outcomes(fuzz):
  def judge(refused, text, expected=True, may_pass=False):
    case = fuzz.Case("", "", lambda: None, "steps", may_pass)
    return fuzz.judge(case, fuzz.Seen(refused, text, expected))

  assert judge(True, "explorax: steps is 0") == "one line"
  assert judge(False, "explorax: steps is odd") == "one line"
  assert judge(True, "explorax: wrong") == "silent"
  assert judge(False, "") == "silent"
  assert judge(False, "", may_pass=True) == "legal"
  assert judge(True, "steps", expected=False) == "traceback"
  command = fuzz.command
  assert not command(lambda argv: int(argv[0]), ["x"]).expected
  assert command(lambda argv: 2, []) == (True, "", True)
  counts = collections.Counter({("a", "one line"): 2, ("b", "silent"): 1})
  assert fuzz.table(counts).splitlines()[-1].split() == ["all", "2", "0", "0", "1"]
