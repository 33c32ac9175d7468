"""The board: what is counted, when a phase ends, and what another board resumes."""

import asyncio

import pytest

from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import board as board_lib
from explorax.experiments.runners.distributed import messages

ROLES = ["replay 0", "learner", "actor 0", "actor 1", "evaluator"]


def _ended(steps_after=0, **totals):
  return messages.EndedEpisode(steps_after, 1.0, 5, "policy", {"x": 2.0}, totals)


class _Run:
  """A board with its processes and its driver, in one event loop."""

  def __init__(self, num_episodes=None, num_steps=None, counts=None):
    self.board = board_lib.Board(ROLES, num_episodes, num_steps)
    self.counts = counts

  async def begin(self):
    await self.board.resume(board_lib.beginning(self.counts))

  async def start(self, role, pid=1):
    task = asyncio.create_task(self.board.start(role, pid))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for waiting in (await self.board.poll()).starting:
      await self.board.give(*waiting, ["start"])
    return await task


def _in_loop(test):
  return lambda: asyncio.run(test())


@_in_loop
async def test_a_report_is_counted_once():
  run = _Run()
  await run.begin()
  incarnation, start = await run.start("actor 0")
  assert (incarnation, start) == (0, ["start"])
  report = messages.Report(1, steps=12, events=(_ended(7), _ended(2)))
  for _ in range(2):
    latest = await run.board.exchange("actor 0", 0, report)
  assert (latest.env_steps, latest.phase, latest.num_acting) == (12, messages.ACTING, 2)
  episodes = (await run.board.poll()).events
  assert [(each.episode, each.env_steps) for each in episodes] == [(1, 5), (2, 10)]
  assert episodes[0].metrics == {"x": 2.0, "actor": 0.0}
  assert (await run.board.poll()).events == []


@_in_loop
async def test_of_two_processes_of_a_role_only_the_later_counts():
  run = _Run()
  await run.begin()
  await run.start("actor 0", pid=5)
  await run.board.exchange("actor 0", 0, messages.Report(1, steps=3))
  await run.board.explain("actor 0", 0, "its environment hung")
  await run.board.poll()
  task = asyncio.create_task(run.board.start("actor 0", 6))
  await asyncio.sleep(0)
  (started,) = (await run.board.poll()).events
  assert started[:3] == ("actor 0", 1, 6)
  assert (started.had_worked, started.reason) == (True, "its environment hung")
  await run.board.give("actor 0", 1, None)
  assert await task == (1, None)
  stale = await run.board.exchange("actor 0", 0, messages.Report(2, steps=3))
  assert stale.phase == messages.STOPPED
  latest = await run.board.exchange("actor 0", 1, messages.Report(1, steps=3))
  assert latest.env_steps == 6


@pytest.mark.parametrize("limits", [{"num_steps": 10}, {"num_episodes": 2}])
def test_acting_ends_at_a_limit(limits):
  async def test():
    run = _Run(**limits)
    await run.begin()
    await run.start("actor 0")
    latest = await run.board.exchange(
      "actor 0", 0, messages.Report(1, steps=9, events=(_ended(4),))
    )
    assert latest.phase == messages.ACTING
    last = messages.Report(2, steps=2, events=(_ended(), _ended()), is_last=True)
    latest = await run.board.exchange("actor 0", 0, last)
    assert (latest.phase, latest.num_acting) == (messages.LEARNING, 1)
    poll = await run.board.poll()
    assert poll.state.counts["env_steps"] == 11
    assert poll.state.counts["episodes"] == limits.get("num_episodes", 3)
    await run.board.enter(messages.STOPPED)
    await run.board.enter(messages.EVALUATING)  # No way back.
    assert (await run.board.poll()).state.phase == messages.STOPPED

  asyncio.run(test())


@_in_loop
async def test_another_board_resumes_from_the_last_poll():
  run = _Run()
  await run.begin()
  await run.start("actor 1")
  version = messages.Version(0, 4, ["weights"])
  await run.start("learner")
  await run.board.exchange(
    "learner", 0, messages.Report(1, version=version, updates=4, metrics={"loss": 1.0})
  )
  report = messages.Report(1, steps=5, events=(_ended(best=3.0),))
  await run.board.exchange("actor 1", 0, report)
  state = (await run.board.poll()).state

  again = board_lib.Board(ROLES, None, None)
  waiting = asyncio.create_task(again.exchange("actor 1", 0, report))
  await asyncio.sleep(0)
  assert isinstance(await again.poll(), int) and not waiting.done()
  await again.resume(state)
  latest = await waiting  # Told again, and not counted again.
  assert (latest.env_steps, latest.version) == (5, version)
  latest = await again.exchange(
    "actor 1", 0, messages.Report(2, steps=5, events=(_ended(best=1.0),))
  )
  (episode,) = (await again.poll()).events
  assert isinstance(episode, core.Episode)
  assert (episode.episode, episode.env_steps, episode.learner_updates) == (2, 10, 4)
  assert (episode.metrics["loss"], episode.metrics["best"]) == (1.0, 4.0)


@_in_loop
async def test_requests_for_the_learners_state_keep_their_numbers():
  run = _Run()
  await run.begin()
  await run.start("learner")
  await run.board.ask_for_state(3)  # Of a board before it, there were two.
  await run.board.ask_for_state(2)  # Late.
  latest = await run.board.exchange("learner", 0, messages.Report(1))
  assert latest.wants_state == 3


@_in_loop
async def test_it_is_known_that_replay_waits_for_the_driver():
  run = _Run()
  assert await run.board.needs_driver()  # Of another board, that it is told the state.
  await run.begin()
  for role, expected in (("actor 0", False), ("replay 0", True)):
    starting = asyncio.create_task(run.board.start(role, 1))
    await asyncio.sleep(0)
    assert await run.board.needs_driver() == expected
    await run.board.give(role, 0, None)
    await starting
    assert not await run.board.needs_driver()


@_in_loop
async def test_an_actor_that_has_ended_does_not_act_again():
  run = _Run()
  await run.begin()
  await run.start("actor 0")
  await run.start("actor 1")
  await run.board.exchange("actor 0", 0, messages.Report(1, is_last=True))
  await run.start("actor 0")  # Killed after its task: Ray restarts the process alone.
  latest = await run.board.exchange("actor 0", 1, messages.Report(1))
  assert (latest.phase, latest.num_acting) == (messages.ACTING, 1)
  await run.board.end("actor 1")  # Its last report was lost with another board.
  latest = await run.board.exchange("actor 1", 0, messages.Report(1))
  assert (latest.phase, latest.num_acting) == (messages.LEARNING, 0)


@_in_loop
async def test_a_run_that_is_resumed_has_later_incarnations():
  run = _Run()
  await run.begin()
  assert (await run.start("actor 0"))[0] == 0
  counts = (await run.board.poll()).state.counts
  counts["incarnations"]["actor 7"] = 3  # This run has fewer actors.
  run = _Run(counts=counts)
  await run.begin()
  assert (await run.start("actor 0"))[0] == 1
  assert (await run.start("actor 1"))[0] == 0


@_in_loop
async def test_blocked_processes_are_reported():
  run = _Run()
  await run.begin()
  await run.start("actor 0")
  await run.start("replay 0")
  await run.board.exchange("actor 0", 0, messages.Report(1, "waits", 70.0))
  blocked = (await run.board.poll()).blocked
  assert blocked["actor 0"] == ("waits", 70.0)
  assert "has not started" in blocked["learner"][0] and "replay 0" not in blocked
  await run.board.exchange("actor 0", 0, messages.Report(2, is_last=True))
  assert "actor 0" not in (await run.board.poll()).blocked
