"""Workers whose processes die, with a Ray of functions."""

import sys
import types

import pytest

from explorax.experiments import errors
from explorax.experiments.tasks import attempts, worker

ASSIGNMENT = worker.Assignment("module:function", {}, "", "")


class DeadError(RuntimeError):
  """Ray's ActorDiedError: the actor is not restarted any more."""


class Actor:
  """Dies for good when it has been asked so many times to start or to compute."""

  def __init__(self, calls: int):
    self._calls = calls
    remote = types.SimpleNamespace
    self.share = remote(remote=lambda: lambda: self._answer((str(id(self)), 0.0)))
    self.compute = remote(
      remote=lambda task: lambda: self._answer(worker.Outcome({}, seconds=1.0))
    )

  def _answer(self, answer):
    self._calls -= 1
    if self._calls < 0:
      raise DeadError("its process ended.\nThe actor died. A common cause is")
    return answer


@pytest.fixture
def start(monkeypatch):
  """Has actors of so many calls started, one after another; returns the list."""
  ray = types.SimpleNamespace(
    wait=lambda calls, num_returns, timeout: (calls if timeout else [], []),
    get=lambda call: call(),
    kill=lambda actor: None,
    exceptions=types.SimpleNamespace(
      RayError=RuntimeError,
      RayActorError=DeadError,
      ActorDiedError=DeadError,
      OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
    ),
  )
  monkeypatch.setitem(sys.modules, "ray", ray)
  monkeypatch.setattr(attempts, "_POLL", 1e-3)
  actors: list[Actor] = []
  monkeypatch.setattr(worker, "start", lambda *_: actors.pop(0))
  return actors


def _compute(num_tasks: int, num_workers: int) -> list[attempts.Attempt]:
  limits = attempts.Limits(1e9, lambda shares: None, lambda: False)
  return [*attempts.on_ray([ASSIGNMENT] * num_tasks, limits, num_workers, None)]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_workers_that_never_start_end_the_computation(start, num_workers):
  start.extend(Actor(0) for _ in range(num_workers))
  with pytest.raises(errors.OutputError, match=r"worker processes \(The actor died\)"):
    _compute(3, num_workers)


def test_a_worker_that_died_for_good_is_replaced(start):
  start.extend([Actor(2), Actor(9)])  # One start and one task.
  done = _compute(3, 1)
  assert [(each.task, each.again) for each in done] == [
    (0, False),
    (1, True),
    (2, False),
    (1, False),
  ]
  assert not start
