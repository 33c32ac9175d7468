"""What the collector answers, without Ray: its methods are awaited here."""

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

import pytest

from explorax.experiments.distributed import (
  collector,
  messages,
  rates,
  replay_server,
  weights,
)
from explorax.experiments.runners import core

LIMITS = rates.Limits(1.0, min_size=4, tolerance=6, pull_every=4, num_steps=20)

# With which nobody waits for the learner.
FREE = rates.Limits(1.0, min_size=1000, tolerance=6, pull_every=4)

NAMED: dict[str, Any] = {
  "num_shards": 1,
  "num_episodes": None,
  "eval_every": None,
  "evaluates": False,
  "patience": 60.0,
  "environment_timeout": 30.0,
}


def _collector(limits: rates.Limits = LIMITS, **changes: Any) -> collector.Collector:
  named: dict[str, Any] = {**NAMED, "num_actors": 2, **changes}
  held = collector.Collector(limits, **named)
  held.begin(None, _situation(named["num_actors"]))
  return held


def _situation(num_actors: int = 2, **changes: Any) -> messages.Situation:
  servers = [replay_server.Server(0, "handle")]
  actors = dict.fromkeys(range(num_actors), 0)
  return messages.Situation(servers, [0], actors)._replace(**changes)


_numbers = itertools.count()


def _version(number: int) -> weights.Version:
  return weights.Version(number, [f"reference {number}"])


async def _answers(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
  """What it was asked, once all that could be done at once has been."""
  task = asyncio.ensure_future(coroutine)
  for _ in range(20):
    await asyncio.sleep(0)
  return task


def _report(steps: int, *episodes: messages.EndedEpisode) -> list[messages.Report]:
  """All that an actor has to tell, told for the first time."""
  return [
    messages.Report(next(_numbers), steps=steps, windows=steps, episodes=episodes)
  ]


def _episode(steps_before: int, regret: float) -> messages.EndedEpisode:
  totals = {"total_regret": regret}
  return messages.EndedEpisode(steps_before, 1.0, 2, "policy", {}, totals)


def _evaluated(env_steps: int) -> messages.Watched:
  return messages.Watched(core.Evaluation(env_steps, (), 0.0), [])


def test_actors_wait_for_weights_and_then_for_the_learner():
  async def check() -> None:
    held = _collector()
    first = await _answers(held.pull(0, []))
    assert not first.done()
    await held.publish(_version(0), last=False)
    assert (await first) == messages.Grant(4, 0, _version(0))
    assert (await held.pull(1, [])).steps == 4
    # The first window comes when eight steps are granted, of which the last is due one.
    assert (await held.pull(0, _report(4))).steps == 4
    again = await _answers(held.pull(1, _report(4)))
    assert not again.done()  # Sixteen would make nine due, and six are tolerated.
    assert await held.learn(0, {}) == messages.Task(1 + 6, (True,))
    learning = await held.learn(3, {"loss": 1.0})
    assert learning.updates == 1 + 6 - 3
    assert (await again).steps == 4 and (await again).env_steps == 8

  asyncio.run(check())


def test_episodes_are_counted_in_the_order_of_reports_and_totals_added():
  async def check() -> None:
    held = _collector(num_episodes=3)
    await held.publish(_version(0), last=False)
    await held.pull(0, [])
    await held.pull(1, [])
    await _answers(held.pull(1, _report(4, _episode(2, 1.0), _episode(4, 1.0))))
    await _answers(held.pull(0, _report(4, _episode(2, 5.0), _episode(4, 1.0))))
    news = await held.news()
    told = [(e.episode, e.env_steps, e.metrics) for e in news.rows]
    assert told == [
      (1, 2, {"total_regret": 1.0, "actor": 1.0}),
      (2, 4, {"total_regret": 2.0, "actor": 1.0}),
      (3, 6, {"total_regret": 7.0, "actor": 0.0}),  # The fourth is beyond the limit.
    ]
    assert news.env_steps == 8 and not (await held.news()).rows
    assert (await held.pull(1, [])).steps == 0

  asyncio.run(check())


def test_a_version_is_given_out_as_often_as_it_is_asked_for():
  async def check() -> None:
    held = _collector()
    for number in (0, 4):
      await held.publish(_version(number), last=False)
      for actor in (0, 1):
        assert (await held.pull(actor, _report(0))).version == _version(number)
    await held.pull(0, _report(0))
    news = await held.news()
    assert news.versions == 2 and news.fetches == {0: 2, 1: 2}

  asyncio.run(check())


def test_the_learner_makes_what_is_due_when_all_steps_are_taken():
  async def check() -> None:
    held = _collector(num_actors=1)
    await held.publish(_version(0), last=False)
    updates = 0
    grant = await held.pull(0, [])
    while grant.steps:
      pulling = await _answers(held.pull(0, _report(grant.steps)))
      while not pulling.done():
        updates += (await held.learn(updates, {})).updates
        learning = await _answers(held.learn(updates, {}))
        if not learning.done():
          learning.cancel()
        await held.news()  # An actor that ends waits until the driver has its reports.
      grant = await pulling
    while not (task := await held.learn(updates, {})).over:
      updates += task.updates
    news = await held.news()
    assert news.env_steps == 20 and 17 <= updates <= 17 + 6

  asyncio.run(check())


@pytest.mark.parametrize("how", ["stop", "last"])
def test_the_evaluator_is_summoned_when_it_is_due(how):
  async def check() -> None:
    held = _collector(eval_every=4, evaluates=True)
    waiting = await _answers(held.summons())
    await held.publish(_version(0), last=False)
    await held.pull(0, [])
    assert not waiting.done()
    assert (await held.pull(0, _report(4))).steps
    assert (await waiting) == messages.Summons(4, _version(0))
    await held.add_evaluation(_evaluated(4))
    waiting = await _answers(held.summons())
    assert not waiting.done()
    if how == "stop":
      await held.stop()
      assert (await waiting) is None
    else:
      await _answers(held.pull(0, _report(4)))
      assert (await waiting) == messages.Summons(8, _version(0))
      await held.add_evaluation(_evaluated(8))
      await held.add_evaluation(_evaluated(8))  # Told again, as to another collector.
      await held.publish(_version(1), last=True)
      waiting = await _answers(held.summons())
      assert not waiting.done()  # Until the driver has what was told last.
      rows = [row.evaluation.env_steps for row in (await held.news()).rows]
      assert rows == [4, 8] and (await waiting) is None

  asyncio.run(check())


def test_who_waits_too_long_is_spoken_of_and_again_after_twice_as_long(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(collector.time, "monotonic", lambda: now[0])

  async def check() -> None:
    held = _collector(num_actors=1)
    now[0] = 59.0
    assert (await held.news()).stalls == []
    now[0] = 61.0
    assert [s.split(":")[0] for s in (await held.news()).stalls] == [
      "for 61 s, the learner has not begun",
      "for 61 s, actor 0 has not begun",
    ]
    await held.publish(_version(0), last=False)
    await held.pull(0, [])
    learning = await _answers(held.learn(0, {}))
    now[0] = 122.0
    assert (await held.news()).stalls == [
      "for 61 s, the learner waits: learning begins after 4 environment steps, and the "
      "actors have taken 0",
      "for 61 s, actor 0 has been at its work without a word",
    ]
    now[0] = 180.0
    assert (await held.news()).stalls == []
    now[0] = 182.0
    assert len((await held.news()).stalls) == 2
    learning.cancel()

  asyncio.run(check())


def test_another_collector_counts_nothing_twice_and_loses_nothing():
  """Whatever of an actor's reports the driver had been told when it died."""

  async def check() -> None:
    for known in (0, 1, 2):
      held = _collector(FREE, num_actors=1)
      await held.publish(_version(0), last=False)
      await held.pull(0, [])
      state, reports = (await held.news()).state, []
      for number in range(2):
        reports += _report(3, _episode(3, 1.0))
        grant = await held.pull(0, reports)
        if number < known:
          state = (await held.news()).state
      told = [r for r in reports if r.number > grant.safe]
      other = collector.Collector(FREE, **NAMED, num_actors=1)
      pulling = await _answers(other.pull(0, [*told, *_report(2)]))
      assert not pulling.done() and isinstance(await other.news(), str)
      again = _situation(1, version=_version(0), restarted=True)
      other.begin(state, again)
      assert (await pulling).env_steps == 8
      news = await other.news()
      assert news.episodes == 2 and news.env_steps == 8
      numbers = [row.episode for row in news.rows]
      assert numbers == [1, 2][known:]
      assert news.state["totals"] == {"total_regret": 2.0}

  asyncio.run(check())


def test_nobody_gets_steps_before_all_have_told_another_collector_theirs():
  async def check() -> None:
    held = collector.Collector(FREE, **NAMED, num_actors=2)
    held.begin(None, _situation(2, version=_version(0), restarted=True))
    first = await _answers(held.pull(0, _report(4)))
    assert not first.done()
    second = await _answers(held.pull(1, _report(3)))
    assert (await first).steps and (await second).steps
    assert (await held.news()).env_steps == 7

  asyncio.run(check())


def test_what_a_dead_actor_was_granted_is_granted_again():
  async def check() -> None:
    held = _collector(FREE, num_actors=1)
    await held.publish(_version(0), last=False)
    grant = await held.pull(0, _report(0))
    dead = await _answers(held.pull(0, _report(grant.steps)))
    await dead
    await held.replace_actor(0, 1)
    grant = await held.pull(0, [messages.Report()], 1)
    assert (grant.steps, grant.env_steps) == (4, 4)
    # One that still waits for the dead one gets nothing, and counts nothing.
    assert (await held.pull(0, _report(4), 0)).steps == 0
    assert (await held.news()).env_steps == 4

  asyncio.run(check())


def test_replay_that_was_lost_is_filled_again_before_learning_goes_on():
  async def check() -> None:
    held = _collector(num_actors=1)
    await held.publish(_version(0), last=False)
    await held.pull(0, [])
    await held.pull(0, _report(4))
    assert (await held.learn(5, {})).filled == (True,)
    await held.replace_server(0, replay_server.Server(1, "other"), 0)
    learning = await _answers(held.learn(6, {}))
    assert not learning.done()
    await _answers(held.pull(0, _report(4)))  # Its windows are in the server that died.
    assert not learning.done()
    report = _report(4)[0]._replace(server=1)
    await _answers(held.pull(0, [report]))
    task = await learning
    assert task.filled == (True,) and task.updates > 0
    assert (await held.server(0, 0)).handle == "other"

  asyncio.run(check())


def test_another_learner_publishes_before_actors_go_on():
  async def check() -> None:
    held = _collector(FREE, num_actors=1)
    await held.publish(_version(0), last=False)
    await held.pull(0, [])
    await held.replace_learner(0, 1)
    pulling = await _answers(held.pull(0, _report(1)))
    assert not pulling.done() and await held.newest() is None
    await held.publish(_version(0), last=False, generation=1)
    await held.replace_learner(0, 1)  # Comes late: it is known already.
    assert (await pulling).version == _version(0) and await held.newest() is not None

  asyncio.run(check())


def test_the_state_of_the_learner_is_asked_for_and_passed_on():
  async def check() -> None:
    held = _collector(FREE, num_actors=1)
    learning = await _answers(held.learn(0, {}))
    await held.ask_for_state()
    assert (await learning) == messages.Task(0, (False,), saves=True)
    saved = messages.Saved(0, {}, ["state"])
    await held.give_state(saved)
    assert (await held.news()).learner == saved
    assert (await held.news()).learner is None

  asyncio.run(check())


def test_an_environment_that_does_not_answer_is_told_of(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(collector.time, "monotonic", lambda: now[0])

  async def check() -> None:
    held = _collector()
    await held.beat("actor 0", 1, 0.0)
    await held.beat("actor 1", 0, 29.0)
    assert not (await held.news()).hanging
    now[0] = 20.0
    await held.beat("actor 1", 0, 31.0)
    generation, why = (await held.news()).hanging["actor 1"]
    assert generation == 0 and "has not answered for 31 s" in why
    await held.beat("actor 1", 1, 0.0)
    await held.beat("actor 1", 0, 40.0)  # Of the one that was replaced.
    assert not (await held.news()).hanging
    now[0] = 41.0
    await held.beat("actor 1", 1, 0.0)
    generation, why = (await held.news()).hanging.pop("actor 0")
    assert generation == 1 and "not been heard of for 41 s" in why

  asyncio.run(check())
