"""The board counts each report once, ends acting at a limit, and resumes its counts."""

import asyncio

import pytest

from explorax.experiments import config as config_lib
from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import board as board_lib
from explorax.experiments.runners.distributed import messages

ROLES = ["replay 0", "learner", "actor 0", "actor 1", "evaluator"]


def _ended(steps_after=0, **totals):
  return messages.EndedEpisode(steps_after, 1.0, 5, "policy", {"x": 2.0}, totals)


def _board(counts=None, **limits):
  config = config_lib.RunConfig(
    agent="dqn", env="bsuite:catch/0", runner="distributed", **limits
  )
  return board_lib.Board(ROLES, config, counts or messages.Counts())


def _in_loop(test):
  return lambda: asyncio.run(test())


@_in_loop
async def test_steps_and_episodes_of_a_report_are_counted():
  board = _board()
  assert await board.start("actor 0", 7) == 0
  report = messages.Report(steps=12, events=(_ended(7), _ended(2)))
  update = await board.exchange("actor 0", report)
  assert (update.env_steps, update.phase, update.num_acting) == (12, messages.ACTING, 2)
  events = (await board.poll()).events
  assert events[1] == messages.Started("actor 0", 7)
  episodes = events[2:]
  assert [(each.episode, each.env_steps) for each in episodes] == [(1, 5), (2, 10)]
  assert episodes[0].metrics == {"x": 2.0, "actor": 0.0}
  assert (await board.poll()).events == []


@_in_loop
async def test_weights_reach_all_processes_and_metrics_the_episodes():
  board = _board()
  version = messages.Version(4, {"loss": 1.0}, ["weights"])
  await board.exchange("learner", messages.Report(version=version))
  update = await board.exchange("actor 1", messages.Report(steps=5, events=(_ended(),)))
  assert update.version == version
  episode = (await board.poll()).events[-1]
  assert isinstance(episode, core.Episode)
  assert (episode.learner_updates, episode.metrics["loss"]) == (4, 1.0)


@pytest.mark.parametrize("limits", [{"steps": 10}, {"episodes": 2}])
def test_acting_ends_at_a_limit(limits):
  async def test():
    board = _board(**limits)
    report = messages.Report(steps=9, events=(_ended(4),))
    assert (await board.exchange("actor 0", report)).phase == messages.ACTING
    report = messages.Report(steps=2, events=(_ended(), _ended()))
    assert (await board.exchange("actor 0", report)).phase == messages.LEARNING
    counts = (await board.poll()).counts
    assert (counts.env_steps, counts.episodes) == (11, limits.get("episodes", 3))
    await board.enter(messages.STOPPED)
    await board.enter(messages.EVALUATING)  # No way back.
    assert (await board.exchange("actor 0", messages.Report())).phase == (
      messages.STOPPED
    )

  asyncio.run(test())


@_in_loop
async def test_learning_ends_acting_when_all_actors_have_ended():
  board = _board()
  await board.end("actor 0")
  update = await board.exchange("learner", messages.Report())
  assert (update.phase, update.num_acting) == (messages.ACTING, 1)
  await board.end("actor 1")  # Below the limit: reports of dead actors were lost.
  update = await board.exchange("learner", messages.Report())
  assert (update.phase, update.num_acting) == (messages.LEARNING, 0)


@_in_loop
async def test_counts_and_numbers_of_processes_resume():
  board = _board()
  assert await board.start("actor 0", 1) == 0
  assert await board.start("actor 0", 2) == 1
  await board.exchange("actor 0", messages.Report(steps=5, events=(_ended(best=3.0),)))
  board = _board((await board.poll()).counts)
  assert await board.start("actor 0", 3) == 2
  assert await board.start("actor 1", 4) == 0
  await board.exchange("actor 1", messages.Report(steps=5, events=(_ended(best=1.0),)))
  episode = (await board.poll()).events[-1]
  assert isinstance(episode, core.Episode)
  assert (episode.episode, episode.env_steps) == (2, 10)
  assert episode.metrics["best"] == 4.0


@_in_loop
async def test_what_processes_do_is_known():
  board = _board()
  await board.start("actor 0", 1)
  await board.start("replay 0", 2)
  await board.exchange("actor 0", messages.Report(doing="waits", seconds=70.0))
  blocked = (await board.poll()).blocked
  assert blocked["actor 0"][0] == "waits" and 70 <= blocked["actor 0"][1] < 80
  assert "replay 0" not in blocked
  assert blocked["learner"][0] == board_lib.NOT_STARTED
  await board.exchange("actor 0", messages.Report())
  doing, seconds = (await board.poll()).blocked["actor 0"]
  assert doing == board_lib.NOT_RESPONDING and seconds < 10
  await board.end("actor 0")
  assert "actor 0" not in (await board.poll()).blocked
