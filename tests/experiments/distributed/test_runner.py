"""The distributed runner, on one Ray for all: what is counted, and how runs end."""

import contextlib
import csv
import io
import json
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from explorax.experiments import ray_cluster, run, threads
from explorax.experiments.distributed import failures

pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")

MIN_SIZE, STEPS, TOLERANCE, PULL = 20, 150, 8, 4
COMMAND = (
  "--agent=dqn",
  "--runner=distributed",
  "--replay=memory",
  f"--variable_update_period={PULL}",
  f"--error_buffer={TOLERANCE}",
  f"--set=min_replay_size={MIN_SIZE}",
  "--set=replay_capacity=200",
  "--set=batch_size=4",
  "--set=hidden_sizes=4",
)
# As Ray calls our processes.
OURS = ("Actor", "Learner", "Evaluator", "Memory", "Collector")


@pytest.fixture(scope="module", autouse=True)
def ray_for_all():
  with ray_cluster.connect(None, 8):
    yield
  assert not _of_ray("")


def _of_ray(name: str) -> list[str]:
  """The processes below this one that Ray calls so."""
  names = []
  for process in psutil.Process().children(recursive=True):
    try:
      names.append(" ".join(process.cmdline()[:1]))
    except psutil.NoSuchProcess:
      continue
  return [each for each in names if each.startswith(f"ray::{name}")]


def _ours_left() -> list[str]:
  """Our processes that are there yet after a while."""
  until = time.monotonic() + 10
  while any(map(_of_ray, OURS)) and time.monotonic() < until:
    time.sleep(0.1)
  return [name for process in OURS for name in _of_ray(process)]


def _run(directory: Any, environment: str, *flags: str) -> int:
  env = f"--env=explorax.environments.testing:{environment}"
  return run.main([*COMMAND, env, f"--output={directory}", *flags])


def _rows(path: Any) -> list[dict[str, str]]:
  with path.open(encoding="utf-8") as file:
    return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """The directory of a run of two actors and an evaluator, from the command line."""
  directory = tmp_path_factory.mktemp("finished") / "run"
  flags = ("--num_actors=2", "--num_envs=3", "--replay_shards=2", f"--steps={STEPS}")
  flags += ("--eval_every=1000", "--eval_episodes=2")
  assert _run(directory, "fake", *flags) == 0
  return directory


def test_steps_and_episodes_are_counted_once(finished):
  summary = json.loads((finished / "summary.json").read_text())
  assert summary["status"] == "finished" and summary["env_steps"] == STEPS
  rows = _rows(finished / "metrics.csv")
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert len(rows) == summary["episodes"]
  # All that were ended, of five steps each, whoever took them.
  steps = [int(row["env_steps"]) for row in rows]
  assert steps == sorted(steps) and steps[-1] <= STEPS
  assert 2 * 3 * 5 > STEPS - 5 * len(rows) >= 0
  assert {(row["episode_length"], row["episode_return"]) for row in rows} == {
    ("5", "5.0")
  }
  assert {row["actor"] for row in rows} == {"0", "1"}


def test_updates_keep_to_the_steps(finished):
  summary = json.loads((finished / "summary.json").read_text())
  assert 0 <= summary["learner_updates"] - (STEPS - MIN_SIZE + 1) <= TOLERANCE
  rows = _rows(finished / "metrics.csv")
  for row in rows:
    due = max(0, int(row["env_steps"]) - MIN_SIZE + 1)
    ahead = int(row["learner_updates"]) - due
    # An episode's steps are told up to a pull before those reported with it.
    assert -TOLERANCE <= ahead <= TOLERANCE + PULL
  assert float(rows[-1]["loss"]) > 0
  with np.load(finished / "checkpoints" / "final.npz") as weights:
    assert all(np.isfinite(weights[name]).all() for name in weights)


def test_the_end_is_evaluated(finished):
  rows = _rows(finished / "evaluation.csv")
  assert [(row["env_steps"], row["episode_return"]) for row in rows] == [
    (str(STEPS), "5.0"),
    (str(STEPS), "5.0"),
  ]


def test_a_run_leaves_files_and_no_process(finished):
  assert (finished / "curve.png").exists() and not _ours_left()
  config = json.loads((finished / "config.json").read_text())
  assert (config["num_actors"], config["replay_shards"]) == (2, 2)
  pids = json.loads((finished / "processes.json").read_text())
  roles = ("replay 0", "replay 1", "learner", "actor 0", "actor 1", "evaluator")
  assert set(pids) == {"driver", "collector", *roles}
  assert len(set(pids.values())) == len(pids) and pids["driver"] == os.getpid()


def _when(condition: Callable[[], bool], action: Callable[[], None]) -> None:
  """Waits for the condition in a thread of its own."""

  def watch() -> None:
    while not condition():
      time.sleep(0.05)
    action()

  threading.Thread(target=watch, daemon=True).start()


def _wait_for(condition: Callable[[], bool]) -> None:
  """In a thread that must not outlast the test by much."""
  until = time.monotonic() + 600
  while not condition() and time.monotonic() < until:
    time.sleep(0.05)


def _kill_in_turn(directory: Any, roles: tuple[str, ...]) -> None:
  """Kills the process of each role, the next one once it was replaced; then Ctrl-C."""
  held = directory / "processes.json"
  metrics = directory / "metrics.csv"

  def pid(role: str) -> int | None:
    return json.loads(held.read_text()).get(role) if held.exists() else None

  def count() -> int:
    return len(_rows(metrics)) if metrics.exists() else 0

  for role in roles:
    _wait_for(lambda role=role: pid(role) is not None)  # type: ignore[misc]
    rows, before = count(), pid(role)
    _wait_for(lambda rows=rows: count() >= rows + 3)  # type: ignore[misc]
    assert before is not None
    began_with = pathlib.Path(f"/proc/{before}/environ").read_bytes()
    (directory.parent / f"{role}.environ").write_bytes(began_with)
    os.kill(before, signal.SIGKILL)
    _wait_for(lambda role=role, b=before: pid(role) not in (b, None))  # type: ignore[misc]
  rows = count()
  _wait_for(lambda: count() >= rows + 3)
  os.kill(os.getpid(), signal.SIGINT)


FAULTS = (
  "--num_actors=2",
  "--eval_every=40",
  "--eval_episodes=1",
  "--checkpoint_every=40",
  "--episodes=4000",
)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory):
  """(directory, stderr's lines) of a run each of whose processes was killed."""
  directory = tmp_path_factory.mktemp("survivor") / "run"
  roles = ("actor 1", "learner", "replay 0", "evaluator", "collector")
  killer = threading.Thread(target=_kill_in_turn, args=(directory, roles), daemon=True)
  killer.start()
  said = io.StringIO()
  with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
    for name in threads.ONE_THREAD:  # What the learner would rightly inherit.
      patch.delenv(name, raising=False)
    assert _run(directory, "fake", *FAULTS) == 130
  killer.join()
  assert not _ours_left()
  return directory, said.getvalue().splitlines()


def test_each_process_that_is_killed_is_replaced_and_spoken_of(survivor):
  directory, said = survivor
  summary = json.loads((directory / "summary.json").read_text())
  roles = ("actor", "learner", "replay", "evaluator", "collector")
  assert summary["replacements"] == dict.fromkeys(roles, 1)
  for who, remedy in (
    ("actor 1", "another has its place, and its half episode is dropped"),
    ("the learner", "another goes on from the checkpoint of environment step"),
    ("replay 0", "another begins empty, and learning waits until it has 20"),
    ("the evaluator", "another has its place"),
    ("the collector", "another goes on with what it had told"),
  ):
    (line,) = [line for line in said if line.startswith(f"explorax: {who} died")]
    assert remedy in line and line.endswith("s).")


def test_who_acts_begins_on_one_core(survivor):
  """Their arguments hold arrays: later than at its start, jax would not hear of it."""
  directory, _ = survivor
  wanted = {*(f"{k}={v}" for k, v in threads.ONE_THREAD.items()), "JAX_PLATFORMS=cpu"}
  for role, holds in {"actor 1": True, "evaluator": True, "learner": False}.items():
    began_with = (directory.parent / f"{role}.environ").read_text().split("\0")
    assert (wanted <= set(began_with)) == holds


def test_no_row_is_there_twice_and_no_step_is_lost(survivor):
  directory, _ = survivor
  summary = json.loads((directory / "summary.json").read_text())
  rows = _rows(directory / "metrics.csv")
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert len(rows) == summary["episodes"]
  # Whole episodes of five steps each, and of what is not among them a few steps: the
  # open episodes of both actors, and those that died with an actor or with replay.
  assert {(row["episode_length"], row["episode_return"]) for row in rows} == {
    ("5", "5.0")
  }
  assert 0 <= summary["env_steps"] - 5 * len(rows) <= 6 * (4 + PULL)
  at = [int(row["env_steps"]) for row in _rows(directory / "evaluation.csv")]
  assert at == sorted(set(at)) and at


def test_updates_keep_to_the_steps_from_the_loss_of_replay_on(survivor):
  directory, _ = survivor
  summary = json.loads((directory / "summary.json").read_text())
  lost = summary["env_steps"] - MIN_SIZE + 1 - summary["learner_updates"]
  # What was learnt less is what it took to fill replay again, once.
  assert -TOLERANCE <= lost <= MIN_SIZE + 3 * TOLERANCE


def test_the_same_command_goes_on_with_exact_counters(survivor):
  directory, _ = survivor
  before = _rows(directory / "metrics.csv")
  summary = json.loads((directory / "summary.json").read_text())
  metrics = directory / "metrics.csv"
  _when(
    lambda: len(_rows(metrics)) >= len(before) + 3,
    lambda: os.kill(os.getpid(), signal.SIGTERM),
  )
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    assert _run(directory, "fake", *FAULTS) == 143
  assert f"It resumes at environment step {summary['env_steps']:,}." in out.getvalue()
  rows = _rows(metrics)
  assert rows[: len(before)] == before and len(rows) > len(before)
  assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
  assert int(rows[len(before)]["env_steps"]) > summary["env_steps"]
  after = json.loads((directory / "summary.json").read_text())
  assert after["env_steps"] > summary["env_steps"]
  assert after["learner_updates"] >= summary["learner_updates"]
  assert after["replacements"] == summary["replacements"]
  assert after["wall_seconds"] > summary["wall_seconds"]
  assert not _ours_left()


def test_an_actor_whose_environment_hangs_is_replaced(tmp_path, capsys):
  metrics = tmp_path / "run" / "metrics.csv"
  _when(
    lambda: metrics.exists() and len(_rows(metrics)) >= 3,
    lambda: os.kill(os.getpid(), signal.SIGINT),
  )
  flags = ("--num_actors=1", "--episodes=1000000", "--environment_timeout=2")
  assert _run(tmp_path / "run", "fake_hanging", *flags) == 130
  lines = [x for x in capsys.readouterr().err.splitlines() if "actor 0 was" in x]
  assert len(lines) == 1 and "(--environment_timeout); another has its" in lines[0]
  assert "its environment has not answered for" in lines[0]
  summary = json.loads((tmp_path / "run" / "summary.json").read_text())
  assert summary["replacements"] == {"actor": 1} and not _ours_left()


def test_a_process_that_fails_as_it_begins_has_not_died_and_says_why():
  import ray

  class Fails:
    def __init__(self):
      raise ValueError("no such game")

    def run(self):
      pass

  process: Any = ray.remote(Fails).options(num_cpus=0).remote()
  with pytest.raises(ray.exceptions.RayActorError) as told:
    ray.get(process.run.remote())
  assert not failures.is_death(told.value)
  stopped = failures.sentence("actor 3", told.value, [None])
  assert str(stopped) == "the process of actor 3 failed: ValueError: no such game"


def test_an_actor_that_fails_is_told_in_a_sentence(tmp_path, capsys):
  flags = ("--num_actors=1", "--steps=1000000", "--max_env_failures=0")
  assert _run(tmp_path / "run", "fake_crashing", *flags) == 1
  (line,) = [x for x in capsys.readouterr().err.splitlines() if "went away" in x]
  assert line.startswith(
    "explorax: actor 0 stopped: the environment of training failed"
  )
  assert "after 2 steps of episode 2" in line
  assert not _ours_left()
