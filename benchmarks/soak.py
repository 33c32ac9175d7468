"""Kills random processes of a long distributed run, and checks that it recovers.

  python benchmarks/soak.py                             # 20 minutes, to results/soak
  python benchmarks/soak.py --minutes=2 --kill_every=15 --seed=3 --output=results/short

DQN learns bsuite's Catch with two actors, an evaluator and Reverb. The seed determines
which processes are killed by SIGKILL: first a role (actor, learner, replay, evaluator,
board), then one of its processes. At the end, a table lists the checks that passed and
failed. The exit code is 0 if all passed; `soak.json` has all measurements.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

ROLES = ("actor", "learner", "replay", "evaluator", "board")
COMMAND = (
  sys.executable,
  "-m",
  "explorax.experiments.run",
  "--agent=dqn",
  "--env=bsuite:catch/0",
  "--runner=distributed",
  "--num_actors=2",
  "--episodes=1000000000",
  "--eval_every=2000",
  "--eval_episodes=10",
  "--checkpoint_every=5000",
  "--checkpoint_replay",
  # Small enough that replay is soon full; then its memory stays constant.
  "--set=replay_capacity=10000",
)
# An environment variable that marks all processes of the run.
_MARK = "EXPLORAX_SOAK"

# Limits of the checks.
_LONGEST_GAP = 60.0  # Seconds without an episode: longer is a deadlock.
_GROWTH = 0.1  # Of memory, from the second quarter of the time to the last.
_RETURN = 0.5  # Of the last evaluations; Catch gives from -1 to 1.
_SECONDS_TO_BEGIN = 300.0
_SECONDS_TO_END = 120.0
_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_BETWEEN_SAMPLES = 2.0


class Kill(NamedTuple):
  """One process that was killed.

  Attributes:
    role: as in `processes.json`.
    at: seconds since the start of the measurement.
    replaced: seconds until another process had the role; None if none had.
    working: seconds until the new process was seen to work; None if it was not.
  """

  role: str
  at: float
  replaced: float | None = None
  working: float | None = None


class Sample(NamedTuple):
  """The memory of the run's processes.

  Attributes:
    at: seconds since the start of the measurement.
    processes: their number.
    mib: their resident memory; a page that several processes share counts in each.
    of_role: the same for each role in `processes.json`.
  """

  at: float
  processes: int
  mib: float
  of_role: dict[str, float]


class Rows:
  """The rows of a CSV file while another process writes it."""

  def __init__(self, path: pathlib.Path):
    self._path = path
    self._file = -1  # Its inode: the file is replaced when columns are added.
    self._offset = 0
    self._columns: list[str] = []
    self.all: list[dict[str, str]] = []

  def new(self) -> list[dict[str, str]]:
    """The rows since the last call, without a last row that is still incomplete."""
    try:
      file = self._path.open("rb")
    except FileNotFoundError:
      return []
    with file:
      known = len(self.all)
      if self._file != (number := os.fstat(file.fileno()).st_ino):
        self._file, self._offset, self._columns, self.all = number, 0, [], []
      file.seek(self._offset)
      text = file.read()
    whole = text[: text.rfind(b"\n") + 1]
    self._offset += len(whole)
    lines = list(csv.reader(io.StringIO(whole.decode())))
    if lines and not self._columns:
      self._columns = lines.pop(0)
    first = known - len(self.all)
    self.all += [dict(zip(self._columns, line, strict=True)) for line in lines]
    return self.all[len(self.all) - len(lines) + first :]


class Run:
  """A distributed run in its own process, which is watched and disturbed."""

  def __init__(self, directory: pathlib.Path, command: Sequence[str] = COMMAND):
    """Starts the run.

    Args:
      directory: the run's directory.
      command: the run's command, without the directory.
    """
    self._directory = directory
    self._token = secrets.token_hex(16)
    self._log = directory.with_suffix(".log").open("wb")
    self._process = subprocess.Popen(
      [*command, f"--output={directory}"],
      stdin=subprocess.DEVNULL,
      stdout=self._log,
      stderr=subprocess.STDOUT,
      env={**os.environ, _MARK: self._token, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    self._start = time.monotonic()
    self._sampled = self._last_row = self._start
    self._episodes = Rows(directory / "metrics.csv")
    self._evaluations = Rows(directory / "evaluation.csv")
    self._watched: list[_Watched] = []
    self.kills: list[Kill] = []
    self.samples: list[Sample] = []
    self.longest_gap = 0.0

  @property
  def seconds(self) -> float:
    """Seconds since `begin` returned; before that, since the run was started."""
    return time.monotonic() - self._start

  @property
  def episodes(self) -> list[dict[str, str]]:
    return self._episodes.all

  @property
  def evaluations(self) -> list[dict[str, str]]:
    return self._evaluations.all

  def is_alive(self) -> bool:
    return self._process.poll() is None

  def begin(self) -> None:
    """Waits for the first episode and evaluation, then starts the measurement.

    Raises:
      RuntimeError: if the run ends, or after five minutes.
    """
    while not (self.evaluations and self.episodes):
      if not self.is_alive() or self.seconds > _SECONDS_TO_BEGIN:
        self.end()
        raise RuntimeError(f"no episode or no evaluation ended; see {self._log.name}.")
      time.sleep(_SECONDS_BETWEEN_LOOKS)
      self._read()
    self._start = self._last_row = time.monotonic()
    self.longest_gap = 0.0

  def pids(self) -> dict[str, int]:
    """Role → process ID, from `processes.json`."""
    text = (self._directory / "processes.json").read_text(encoding="utf-8")
    return json.loads(text)

  def roles(self) -> list[str]:
    """The roles whose processes are alive, without the driver."""
    there = self._pids_with_mark()
    return [
      role
      for role, pid in self.pids().items()
      if pid in there and role.split()[0] in ROLES
    ]

  def kill(self, role: str) -> None:
    """Kills the process of one of the `roles`; `watch` looks for its replacement."""
    pid = self.pids()[role]
    with contextlib.suppress(ProcessLookupError):
      os.kill(pid, signal.SIGKILL)
    self.kills.append(Kill(role, self.seconds))
    self._watched.append(_Watched(len(self.kills) - 1, pid))

  def is_whole(self) -> bool:
    """Whether all killed processes have been replaced and work again."""
    return not self._watched

  def watch(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
    """Watches the run for some seconds, or until a condition holds or the run ends."""
    over = time.monotonic() + seconds
    while time.monotonic() < over and self.is_alive() and not until():
      time.sleep(_SECONDS_BETWEEN_LOOKS)
      self._look()

  def end(self) -> int | None:
    """Ends the run by SIGTERM; returns its exit code, or None if it did not end."""
    if self.is_alive():
      self._process.send_signal(signal.SIGTERM)
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
      code = self._process.wait(_SECONDS_TO_END)
    self._read()
    self._log.close()
    return code

  def left(self, seconds: float = 10.0) -> list[str]:
    """Kills and returns the processes that are alive some seconds after the run."""
    until = time.monotonic() + seconds
    while (found := self._pids_with_mark()) and time.monotonic() < until:
      time.sleep(_SECONDS_BETWEEN_LOOKS)
    names = []
    for pid in found:
      with contextlib.suppress(OSError):
        name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        names.append(name.replace(b"\0", b" ").decode(errors="replace").strip()[:80])
        os.kill(pid, signal.SIGKILL)
    return names

  def _pids_with_mark(self) -> list[int]:
    """The living processes of the run: its own and all that it started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
      with contextlib.suppress(OSError):
        if f"{_MARK}={self._token}".encode() in (path / "environ").read_bytes():
          found.append(int(path.name))
    return found

  def _read(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    now = time.monotonic()
    rows, evaluations = self._episodes.new(), self._evaluations.new()
    self.longest_gap = max(self.longest_gap, now - self._last_row)
    if rows:
      self._last_row = now
    return rows, evaluations

  def _look(self) -> None:
    rows, evaluations = self._read()
    pids = self.pids()
    for watched in list(self._watched):
      kill = self.kills[watched.kill]
      waited = self.seconds - kill.at
      if pids.get(kill.role, watched.pid) == watched.pid:
        continue
      if kill.replaced is None:
        self.kills[watched.kill] = kill._replace(replaced=waited)
      elif watched.works(kill.role, rows, evaluations):
        self.kills[watched.kill] = kill._replace(working=waited)
        self._watched.remove(watched)
    if time.monotonic() - self._sampled >= _SECONDS_BETWEEN_SAMPLES:
      self._sampled = time.monotonic()
      self.samples.append(self._sample(pids))

  def _sample(self, pids: dict[str, int]) -> Sample:
    of_pid = {}
    for pid in self._pids_with_mark():
      with contextlib.suppress(OSError):
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
        of_pid[pid] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    of_role = {role: of_pid[pid] for role, pid in pids.items() if pid in of_pid}
    return Sample(self.seconds, len(of_pid), sum(of_pid.values()), of_role)


class _Watched:
  """A killed process whose replacement has not been seen to work yet."""

  def __init__(self, kill: int, pid: int):
    self.kill = kill  # The index in `Run.kills`.
    self.pid = pid
    self._updates: set[str] = set()

  def works(
    self,
    role: str,
    rows: Sequence[dict[str, str]],
    evaluations: Sequence[dict[str, str]],
  ) -> bool:
    """Whether the rows since the replacement show that it works."""
    kind, _, number = role.partition(" ")
    if kind == "actor":
      return any(float(row["actor"]) == float(number) for row in rows)
    if kind == "evaluator":
      return bool(evaluations)
    if kind == "board":
      return bool(rows)
    # The learner or replay: new updates, which need both.
    self._updates |= {row["learner_updates"] for row in rows}
    return len(self._updates) > 1


class Verdict(NamedTuple):
  """The result of one check."""

  what: str
  held: bool
  found: str


def judge(
  run: Run, code: int | None, left: Sequence[str], planned: float
) -> list[Verdict]:
  """The results of all checks.

  Args:
    run: the run, after its end.
    code: its exit code.
    left: processes that outlived it.
    planned: the planned duration in seconds.
  """
  lasted = run.samples[-1].at if run.samples else 0.0
  waited = [kill for kill in run.kills if kill.working is None]
  slowest = max((kill.working or 0.0 for kill in run.kills), default=0.0)
  numbers = [int(row["episode"]) for row in run.episodes]
  steps = [int(row["env_steps"]) for row in run.episodes]
  once = numbers == list(range(1, len(numbers) + 1)) and steps == sorted(steps)
  before, after = quarters(run.samples)
  last = [float(row["episode_return"]) for row in run.evaluations[-30:]]
  learnt = statistics.fmean(last) if last else float("nan")
  not_back = ", ".join(f"{kill.role} at {kill.at:.0f} s" for kill in waited)
  return [
    Verdict(
      "the run continued to its end, and SIGTERM ended it",
      code == 128 + signal.SIGTERM and lasted >= 0.9 * planned,
      f"exit code {code} after {lasted:.0f} s",
    ),
    Verdict(
      f"no deadlock: episodes at least every {_LONGEST_GAP:.0f} s",
      run.longest_gap <= _LONGEST_GAP,
      f"longest gap {run.longest_gap:.1f} s",
    ),
    Verdict(
      "every process killed was replaced and worked again",
      not waited,
      f"{len(run.kills)} killed, at work after at most {slowest:.1f} s"
      + (f"; not again: {not_back}" if waited else ""),
    ),
    Verdict(
      "episodes and steps counted once",
      once,
      f"{len(numbers)} episodes{'' if once else ', out of order'}",
    ),
    Verdict(
      "no process left", not left, f"{len(left)} left" + (f": {left}" if left else "")
    ),
    Verdict(
      f"memory flat: at most {_GROWTH:.0%} more in the last quarter than the second",
      bool(after <= (1 + _GROWTH) * before),
      f"{before:.0f} MiB, then {after:.0f} MiB",
    ),
    Verdict(
      f"learnt: the last evaluations return {_RETURN} or more",
      learnt >= _RETURN,
      f"{learnt:.2f} over {len(last)} episodes",
    ),
  ]


def quarters(samples: Sequence[Sample]) -> tuple[float, float]:
  """Median MiB in the second and in the last quarter of the time."""
  if len(samples) < 8:
    return float("nan"), float("nan")
  quarter = len(samples) // 4
  second, last = samples[quarter : 2 * quarter], samples[-quarter:]
  return (
    statistics.median(sample.mib for sample in second),
    statistics.median(sample.mib for sample in last),
  )


def draw(rng: random.Random, roles: Iterable[str]) -> str:
  """Draws the process to kill: first a role, then one of its processes."""
  there = sorted(roles)
  kind = rng.choice(sorted({role.split()[0] for role in there}))
  return rng.choice([role for role in there if role.split()[0] == kind])


def by_role(kills: Iterable[Kill]) -> list[dict[str, Any]]:
  """A row for each role: its number of kills, and its seconds until recovery."""
  rows = []
  for kind in ROLES:
    of_kind = [kill for kill in kills if kill.role.split()[0] == kind]
    if not of_kind:
      continue
    row: dict[str, Any] = {"killed": kind, "times": len(of_kind)}
    for field in ("replaced", "working"):
      seconds = [getattr(k, field) for k in of_kind if getattr(k, field) is not None]
      if seconds:
        row[f"{field}_s"] = statistics.median(seconds)
        row[f"{field}_s_at_most"] = max(seconds)
    rows.append(row)
  return rows


def measure_recovery(directory: pathlib.Path, times: int) -> list[dict[str, Any]]:
  """Kills each role `times` times, one after the other; returns recovery times."""
  run = Run(directory)
  try:
    run.begin()
    for role in times * ("actor 0", "learner", "replay 0", "evaluator", "board"):
      run.watch(5.0)
      if role in run.roles():
        run.kill(role)
        run.watch(_LONGEST_GAP, until=run.is_whole)
  finally:
    run.end()
    run.left()
  return by_role(run.kills)


def soak(
  directory: pathlib.Path, minutes: float, kill_every: float, seed: int
) -> tuple[Run, list[Verdict]]:
  """Runs the test; returns the measurements and the verdicts."""
  rng = random.Random(seed)
  planned = 60 * minutes
  code: int | None = None
  run = Run(directory)
  try:
    run.begin()
    while run.is_alive() and run.seconds < planned - kill_every:
      run.watch(kill_every)
      if roles := run.roles():
        run.kill(draw(rng, roles))
        print(f"{run.seconds:6.0f} s  killed {run.kills[-1].role}", flush=True)
    run.watch(planned - run.seconds)
    # The last kill may be recent: wait for its recovery.
    run.watch(_LONGEST_GAP, until=run.is_whole)
  finally:
    code = run.end()
    left = run.left()
  return run, judge(run, code, left, planned)


def _print(rows: Sequence[dict[str, Any]]) -> None:
  for row in rows:
    cells = (
      f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}"
      for key, value in row.items()
    )
    print("  " + ", ".join(cells))


def main() -> int:
  """Returns the exit code."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--minutes", type=float, default=20.0)
  parser.add_argument("--kill_every", type=float, default=20.0, help="seconds")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--output", type=pathlib.Path, default="results/soak")
  args = parser.parse_args()
  try:
    args.output.mkdir(parents=True)
  except FileExistsError:
    parser.error(f"{args.output} exists already; choose another --output.")
  run, verdicts = soak(args.output / "run", args.minutes, args.kill_every, args.seed)
  print()
  for verdict in verdicts:
    print(f"{'held  ' if verdict.held else 'FAILED'}  {verdict.what}: {verdict.found}")
  print("\nMedian and longest seconds until replaced, and until seen to work:")
  _print(by_role(run.kills))
  report = {
    "minutes": args.minutes,
    "kill_every": args.kill_every,
    "seed": args.seed,
    "verdicts": [verdict._asdict() for verdict in verdicts],
    "kills": [kill._asdict() for kill in run.kills],
    "samples": [sample._asdict() for sample in run.samples],
  }
  path = args.output / "soak.json"
  path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
  print(f"\nAll measurements: {path}; the run: {args.output / 'run'}")
  return 0 if all(verdict.held for verdict in verdicts) else 1


if __name__ == "__main__":
  sys.exit(main())
