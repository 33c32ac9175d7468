"""The soak test: which processes it kills, what it measures, and its verdicts."""

import collections
import json
import os
import random
import signal
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(
  sys.platform != "linux", reason="processes are looked for in /proc"
)


@pytest.fixture(scope="module")
def soak(load):
  return load("soak")


# Two "actors" that sleep. The one at work is replaced when it dies; the other is not.
_FAKE = """
import json, pathlib, signal, subprocess, sys, time

directory = pathlib.Path(sys.argv[-1].removeprefix("--output="))
directory.mkdir()
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
start = lambda: subprocess.Popen(["sleep", "60"])
processes = {"actor 0": start(), "board": start()}
lines = ["episode,env_steps,episode_return,learner_updates,actor"]
(directory / "evaluation.csv").write_text("episode_return\\n1.0\\n")
number = 0
while not over:
  if processes["actor 0"].poll() is not None:
    processes["actor 0"] = start()
  number += 1
  lines.append(f"{number},{10 * number},1.0,{number},0")
  (directory / "metrics.new").write_text("\\n".join(lines) + "\\n")
  (directory / "metrics.new").replace(directory / "metrics.csv")
  pids = {role: process.pid for role, process in processes.items()}
  (directory / "new").write_text(json.dumps(pids))
  (directory / "new").replace(directory / "processes.json")
  time.sleep(0.05)
processes["actor 0"].kill()
processes["actor 0"].wait()
sys.exit(143)
"""


@pytest.fixture
def run(soak, tmp_path, monkeypatch):
  """A run whose actor is replaced, and whose board outlives it and is not."""
  monkeypatch.setattr(soak, "_SECONDS_BETWEEN_LOOKS", 0.05)
  monkeypatch.setattr(soak, "_SECONDS_BETWEEN_SAMPLES", 0.05)
  script = tmp_path / "fake.py"
  script.write_text(textwrap.dedent(_FAKE), encoding="utf-8")
  run = soak.Run(tmp_path / "run", [sys.executable, str(script)])
  yield run
  run.end()
  run.left(seconds=0.0)


def test_a_replaced_process_and_one_left_over(soak, run):
  run.begin()
  run.kill("actor 0")
  run.watch(60.0, until=run.is_whole)
  assert run.is_whole()
  (kill,) = run.kills
  assert kill.role == "actor 0" and 0 < kill.replaced <= kill.working < 60
  run.watch(60.0, until=lambda: len(run.samples) >= 8)
  assert run.samples[-1].processes == 3  # The run's own, and two.
  assert set(run.samples[-1].of_role) == {"actor 0", "board"}
  assert run.samples[-1].mib > sum(run.samples[-1].of_role.values()) > 0
  code = run.end()
  left = run.left(seconds=0.2)
  assert code == 143 and left == ["sleep 60"]
  assert not run.left(seconds=60.0)  # It was killed.
  verdicts = {v.what.split(":")[0]: v.held for v in soak.judge(run, code, left, 0.0)}
  assert [what for what, held in verdicts.items() if not held] == ["no process left"]


def test_a_process_that_is_not_replaced_is_named(soak, run):
  run.begin()
  assert run.roles() == ["actor 0", "board"]
  run.kill("board")
  run.watch(0.5, until=run.is_whole)
  assert run.roles() == ["actor 0"]
  assert not run.is_whole() and run.kills[0].replaced is None
  held = {v.what: v for v in soak.judge(run, run.end(), [], 0.0)}
  verdict = held["every process killed was replaced and worked again"]
  assert not verdict.held and "not again: board at 0 s" in verdict.found


def test_a_run_that_does_not_begin_is_an_error(soak, tmp_path):
  run = soak.Run(tmp_path / "run", [sys.executable, "-c", "raise SystemExit(2)"])
  with pytest.raises(RuntimeError, match=r"no evaluation ended; see .*run\.log"):
    run.begin()


def test_rows_come_once_whatever_becomes_of_the_file(soak, tmp_path):
  path = tmp_path / "metrics.csv"
  rows = soak.Rows(path)
  assert rows.new() == []
  path.write_text("a,b\n1,2\n3")
  assert rows.new() == [{"a": "1", "b": "2"}]
  with path.open("a") as file:
    file.write(",4\n")
  assert rows.new() == [{"a": "3", "b": "4"}] and rows.new() == []
  other = tmp_path / "other"
  other.write_text("a,b,c\n1,2,\n3,4,\n5,6,7\n")
  other.replace(path)
  assert rows.new() == [{"a": "5", "b": "6", "c": "7"}] and rows.new() == []
  assert [row["a"] for row in rows.all] == ["1", "3", "5"]


@pytest.mark.parametrize(
  ("role", "rows", "evaluations", "works"),
  [
    ("actor 1", [("0", "7"), ("1", "7")], 0, True),
    ("actor 1", [("0", "7")], 1, False),
    ("learner", [("0", "7"), ("1", "7")], 0, False),
    ("learner", [("0", "7"), ("1", "8")], 0, True),
    ("replay 0", [("0", "7"), ("1", "8")], 0, True),
    ("board", [("0", "7")], 0, True),
    ("board", [], 1, False),
    ("evaluator", [("0", "7"), ("1", "8")], 0, False),
    ("evaluator", [], 1, True),
  ],
)
def test_what_shows_that_a_process_works(soak, role, rows, evaluations, works):
  watched = soak._Watched(kill=0, pid=1)
  told = [{"actor": actor, "learner_updates": updates} for actor, updates in rows]
  assert watched.works(role, told, evaluations * [{}]) is works


def test_updates_count_over_several_looks(soak):
  watched = soak._Watched(kill=0, pid=1)
  rows = [[{"actor": "0", "learner_updates": number}] for number in ("3", "3", "4")]
  assert [watched.works("learner", each, []) for each in rows] == [False, False, True]


def test_roles_are_drawn_evenly_and_by_the_seed(soak):
  roles = ["board", "learner", "evaluator", "replay 0", "actor 0"]
  roles += [f"actor {number}" for number in range(1, 6)]
  rng = random.Random(0)
  drawn = [soak.draw(rng, roles) for _ in range(2000)]
  assert set(drawn) == set(roles)
  counts = collections.Counter(role.split()[0] for role in drawn)
  assert all(300 < counts[role] < 500 for role in soak.ROLES)  # 400 ± 5 deviations.
  again = random.Random(0)
  assert drawn == [soak.draw(again, list(reversed(roles))) for _ in range(2000)]


def test_memory_growth_compares_quarters(soak):
  samples = [soak.Sample(float(i), 3, float(10 * i), {}) for i in range(8)]
  assert soak.quarters(samples) == (25.0, 65.0)
  before, after = soak.quarters(samples[:7])
  assert before != before and after != after  # Too few.


def test_recovery_times_are_grouped_by_role(soak):
  kills = [
    soak.Kill("actor 1", 5.0, 1.0, 2.0),
    soak.Kill("actor 0", 9.0, 3.0, 8.0),
    soak.Kill("learner", 20.0, 4.0, None),
  ]
  assert soak.by_role(kills) == [
    {
      "killed": "actor",
      "times": 2,
      "replaced_s": 2.0,
      "replaced_s_at_most": 3.0,
      "working_s": 5.0,
      "working_s_at_most": 8.0,
    },
    {"killed": "learner", "times": 1, "replaced_s": 4.0, "replaced_s_at_most": 4.0},
  ]


class _Ended:
  """What `judge` reads of a run: one in which all went well."""

  def __init__(self, soak):
    self.samples = [soak.Sample(float(i), 5, 1000.0, {}) for i in range(100)]
    self.kills = [soak.Kill("learner", 5.0, 1.0, 2.0)]
    self.longest_gap = 3.0
    self.episodes = [{"episode": str(i), "env_steps": str(9 * i)} for i in range(1, 9)]
    self.evaluations = [{"episode_return": "1.0"} for _ in range(30)]


def _break(name, run, soak):
  if name == "no deadlock":
    run.longest_gap = 61.0
  elif name == "counted once":
    run.episodes[4] = run.episodes[3]
  elif name == "memory flat":
    run.samples[80:] = [soak.Sample(float(i), 5, 1101.0, {}) for i in range(80, 100)]
  elif name == "learnt":
    run.evaluations[10:] = [{"episode_return": "0.2"} for _ in range(20)]


@pytest.mark.parametrize(
  "name", ["no deadlock", "counted once", "memory flat", "learnt"]
)
def test_each_problem_fails_its_check(soak, name):
  code = 128 + signal.SIGTERM
  run = _Ended(soak)
  assert all(verdict.held for verdict in soak.judge(run, code, [], 100.0))
  _break(name, run, soak)
  failed = [v.what for v in soak.judge(run, code, [], 100.0) if not v.held]
  assert len(failed) == 1 and name in failed[0]


def test_a_run_that_ended_early_or_otherwise_fails(soak):
  run = _Ended(soak)
  for code, planned in ((143, 200.0), (0, 100.0), (None, 100.0)):
    assert not soak.judge(run, code, [], planned)[0].held


def test_the_command_kills_and_reports(soak, run, tmp_path, monkeypatch, capsys):
  """All of it, on the fake run, which has an actor and a board."""
  monkeypatch.setattr(soak, "Run", lambda directory: run)
  monkeypatch.setattr(soak, "ROLES", ("actor",))
  output = tmp_path / "new" / "soak"
  arguments = ["", "--minutes=0.05", "--kill_every=1", f"--output={output}"]
  monkeypatch.setattr(sys, "argv", arguments)
  assert soak.main() == 1  # The board is left.
  report = json.loads((output / "soak.json").read_text())
  # There is no time for the second if the first came late.
  assert [kill["role"] for kill in report["kills"]] in (["actor 0"], ["actor 0"] * 2)
  failed = [v["what"] for v in report["verdicts"] if not v["held"]]
  assert failed == ["no process left"]
  assert "FAILED  no process left: 1 left" in capsys.readouterr().out
  with pytest.raises(SystemExit):
    soak.main()
  assert "exists already; choose another" in capsys.readouterr().err


def test_the_mark_tells_this_run_from_others(soak, run):
  """A process that others have started with such a mark is not this run's."""
  run.begin()
  other = os.spawnve(
    os.P_NOWAIT, "/bin/sleep", ["sleep", "60"], {soak._MARK: "another"}
  )
  try:
    time.sleep(0.1)
    assert other not in run._pids_with_mark()
  finally:
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
