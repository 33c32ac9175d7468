"""Workers that come to an end, on a stand-in for Ray."""

import pytest

from explorax.experiments.sweeps import perform, pool, tasks

pytest.importorskip("ray")

TASKS = [tasks.Task("dqn", f"catch/{i}", 0, 1) for i in range(3)]
DONE = perform.Outcome([{"episode": 1}], "", "", 1.0, "local")


class _Ref:
  def __init__(self, answer, args):
    self.answer = lambda: answer(*args)


class _Method:
  """Of a worker: `remote` begins a call, and the call answers when it is asked."""

  def __init__(self, answer):
    self.remote = lambda *args: _Ref(answer, args)


class _Worker:
  def __init__(self, do):
    self.ready = _Method(lambda: True)
    self.share = _Method(lambda: 0.5)
    self.perform = _Method(do)


class _Ray:
  """What of Ray the pool uses."""

  def __init__(self):
    from ray import exceptions

    self.exceptions = exceptions
    self.killed = []
    self.get = lambda ref: ref.answer()
    self.kill = self.killed.append
    self.wait = lambda refs, num_returns=1, timeout=None: (refs[:num_returns], [])


@pytest.mark.parametrize(
  ("name", "args"),
  [("OutOfMemoryError", ("it ended",)), ("ActorDiedError", ()), ("RayError", ())],
)
def test_a_worker_that_has_ended_is_replaced_and_the_others_go_on(
  monkeypatch, name, args
):
  ray = _Ray()
  error = getattr(ray.exceptions, name)
  started = []

  def start():
    ended = False

    def do(task):
      nonlocal ended
      ended = ended or (len(started) == 1 and task == TASKS[0])
      if ended:
        raise error(*args)
      return DONE

    started.append(_Worker(do))
    return started[-1]

  workers = pool.Pool(1, start, time_limit=60.0)
  monkeypatch.setattr(workers, "_ray", ray)
  reports = list(
    workers.compute(TASKS, on_progress=lambda shares: None, stop=lambda: False)
  )
  assert [(r.task, r.outcome.rows is not None, r.attempts) for r in reports] == [
    (0, False, 1),
    (1, True, 1),
    (2, True, 1),
    (0, True, 2),
  ]
  assert len(started) == 2 and ray.killed == started[:1]
  said = reports[0].outcome.problem
  assert ("memory" in said) == (name != "RayError"), said


def test_a_pool_has_workers():
  with pytest.raises(ValueError, match="0 workers"):
    pool.Pool(0, lambda: None, time_limit=1.0)
