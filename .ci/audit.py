"""Looks for known vulnerabilities in the locked versions.

  .venv/bin/python .ci/audit.py

They are asked for at PyPI, and at OSV where PyPI tells nothing, as a mirror may. Where
neither answers within a minute this says so and is content. A vulnerability that
requirements/audit.txt does not name makes it fail.
"""

import json
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_REQUIREMENTS = pathlib.Path(__file__).resolve().parents[1] / "requirements"
LOCK = _REQUIREMENTS / "py311-reverb.txt"
ALLOWED = _REQUIREMENTS / "audit.txt"
SERVICES = ("pypi", "osv")
_SECONDS = 60.0  # For all of it.


class UnreachableError(Exception):
  """A service that does not answer, or knows nothing of any package."""


class Vulnerability(NamedTuple):
  """One of a locked version."""

  package: str
  version: str
  id: str
  aliases: tuple[str, ...]
  fixed_in: tuple[str, ...]

  def __str__(self) -> str:
    others = f" ({', '.join(self.aliases)})" if self.aliases else ""
    fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed yet"
    return f"{self.package} {self.version}: {self.id}{others}, {fixed}"


def ask(service: str, seconds: float) -> dict[str, Any]:
  """What pip-audit finds in the lock, as it writes it.

  Raises:
    UnreachableError: if the service does not answer in time.
    RuntimeError: if pip-audit fails for another reason.
  """
  command = [sys.executable, "-m", "pip_audit", f"--requirement={LOCK}"]
  command += ["--disable-pip", "--require-hashes", f"--vulnerability-service={service}"]
  command += ["--format=json", "--progress-spinner=off", "--timeout=10"]
  try:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
  except subprocess.TimeoutExpired as error:
    raise UnreachableError(f"{service} took more than {seconds:.0f} s") from error
  if done.stdout.strip():
    return json.loads(done.stdout)  # With code 1 where there are vulnerabilities.
  lines = done.stderr.strip().splitlines() or [
    f"pip-audit ended with {done.returncode}"
  ]
  if re.search(r"requests\.exceptions|ConnectionError|ServiceError", lines[-1]):
    raise UnreachableError(f"{service} does not answer")
  raise RuntimeError(lines[-1])


def read(report: Mapping[str, Any]) -> tuple[int, list[str], list[Vulnerability]]:
  """(How many packages were audited, those that were not, what was found)."""
  skipped, found = [], []
  for package in report["dependencies"]:
    if "skip_reason" in package:
      skipped.append(package["name"])
      continue
    found += [
      Vulnerability(
        package["name"],
        package["version"],
        vulnerability["id"],
        tuple(vulnerability["aliases"]),
        tuple(vulnerability["fix_versions"]),
      )
      for vulnerability in package["vulns"]
    ]
  return len(report["dependencies"]) - len(skipped), skipped, found


def parse_allowed(text: str) -> dict[str, str]:
  """ID → reason, of lines `ID reason`.

  Raises:
    ValueError: at an ID without a reason.
  """
  allowed = {}
  for line in text.splitlines():
    if not line.strip() or line.startswith("#"):
      continue
    name, _, reason = line.partition(" ")
    if not reason.strip():
      raise ValueError(f"{ALLOWED.name} gives no reason for {name}.")
    allowed[name] = reason.strip()
  return allowed


def judge(found: Sequence[Vulnerability], allowed: Mapping[str, str]) -> list[str]:
  """Prints all vulnerabilities; returns the IDs of those that are not allowed."""
  refused = []
  for vulnerability in found:
    names = {vulnerability.id, *vulnerability.aliases}
    reasons = [allowed[name] for name in sorted(names & set(allowed))]
    if not reasons:
      refused.append(vulnerability.id)
    print(f"{vulnerability}{': allowed, ' + reasons[0] if reasons else ''}")
  return refused


def main() -> int:
  """Returns the exit code."""
  allowed = parse_allowed(ALLOWED.read_text(encoding="utf-8"))
  until = time.monotonic() + _SECONDS
  for service in SERVICES:
    try:
      report = ask(service, max(1.0, until - time.monotonic()))
    except UnreachableError as error:
      print(f"{error}.")
      continue
    audited, skipped, found = read(report)
    if not audited:
      print(f"{service} tells nothing about vulnerabilities.")
      continue
    print(f"{audited} of {audited + len(skipped)} packages audited by {service}.")
    if skipped:
      print(f"Not known there: {', '.join(skipped)}.")
    if refused := judge(found, allowed):
      print(
        f"Take other versions than those with {', '.join(refused)}, or name them in "
        f"requirements/{ALLOWED.name} with a reason.",
        file=sys.stderr,
      )
      return 1
    return 0
  print("The locked versions could not be audited: left out.")
  return 0


if __name__ == "__main__":
  sys.exit(main())
