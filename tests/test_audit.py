"""The audit of the locked versions: what fails, what is allowed, what is left out."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def audit():
  spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


SOUND = {"name": "six", "version": "1.17.0", "vulns": []}
UNKNOWN = {"name": "local", "skip_reason": "not found on PyPI"}
UNSOUND = {
  "name": "old",
  "version": "1.0",
  "vulns": [
    {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1"], "description": ""},
    {"id": "GHSA-2", "aliases": [], "fix_versions": [], "description": ""},
  ],
}
REFUSED = "HTTPSConnectionPool: Max retries exceeded"
UNREACHABLE = f"Traceback\nrequests.exceptions.ConnectionError: {REFUSED}"


@pytest.fixture
def answers(audit, monkeypatch, tmp_path):
  """(allowed, {service: packages, or what is complained of}) → exit code."""

  def run(allowed: str, of_service: dict) -> int:
    def answer(command, **_):
      assert command[:3] == [sys.executable, "-m", "pip_audit"]
      (service,) = (c.split("=")[1] for c in command if c.startswith("--vulnerability"))
      told = of_service[service]
      if told is None:
        raise subprocess.TimeoutExpired(command, 60.0)
      if isinstance(told, str):
        return subprocess.CompletedProcess(command, 1, "", told)
      report = json.dumps({"dependencies": told, "fixes": []})
      return subprocess.CompletedProcess(command, 1, report, "Found vulnerabilities")

    path = tmp_path / "audit.txt"
    path.write_text(allowed, encoding="utf-8")
    monkeypatch.setattr(audit, "ALLOWED", path)
    monkeypatch.setattr(subprocess, "run", answer)
    return audit.main()

  return run


def test_a_vulnerability_fails(answers, capsys):
  assert answers("", {"pypi": [SOUND, UNSOUND, UNKNOWN]}) == 1
  printed = capsys.readouterr()
  assert "2 of 3 packages audited by pypi.\nNot known there: local." in printed.out
  assert "old 1.0: PYSEC-1 (CVE-1), fixed in 1.1\n" in printed.out
  assert "old 1.0: GHSA-2, not fixed yet\n" in printed.out
  assert "those with PYSEC-1, GHSA-2, or" in printed.err


def test_one_is_allowed_by_each_of_its_names_and_the_other_is_not(answers, capsys):
  assert answers("CVE-1 never reached\n", {"pypi": [UNSOUND]}) == 1
  printed = capsys.readouterr()
  assert "fixed in 1.1: allowed, never reached" in printed.out
  assert "those with GHSA-2, or" in printed.err
  both = "# Why.\n\nPYSEC-1 never reached\nGHSA-2 disputed\n"
  assert answers(both, {"pypi": [UNSOUND]}) == 0


@pytest.mark.parametrize("pypi", [UNREACHABLE, None, [UNKNOWN]])
def test_the_second_service_is_asked_where_the_first_tells_nothing(answers, pypi):
  assert answers("", {"pypi": pypi, "osv": [SOUND]}) == 0
  assert answers("", {"pypi": pypi, "osv": [UNSOUND]}) == 1


def test_where_none_tells_anything_it_is_left_out(answers, capsys):
  assert answers("", {"pypi": [UNKNOWN], "osv": UNREACHABLE}) == 0
  assert "could not be audited: left out" in capsys.readouterr().out


def test_other_failures_are_not_passed_over(answers):
  with pytest.raises(RuntimeError, match="invalid requirements"):
    answers("", {"pypi": "ERROR: invalid requirements input"})


def test_an_allowance_needs_a_reason(answers):
  with pytest.raises(ValueError, match="no reason for CVE-1"):
    answers("CVE-1\n", {})


def test_those_allowed_have_reasons(audit):
  audit.parse_allowed(audit.ALLOWED.read_text(encoding="utf-8"))
