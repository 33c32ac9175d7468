"""What the collector answers, without Ray: its methods are awaited here."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from explorax.experiments.distributed import collector, rates, weights

LIMITS = rates.Limits(1.0, min_size=4, tolerance=6, pull_every=4, num_steps=20)


def _collector(**changes: Any) -> collector.Collector:
  named: dict[str, Any] = {
    "num_actors": 2,
    "num_shards": 1,
    "num_episodes": None,
    "eval_every": None,
    "evaluates": False,
    "patience": 60.0,
    **changes,
  }
  return collector.Collector(LIMITS, **named)


def _version(number: int) -> weights.Version:
  return weights.Version(number, [f"reference {number}"])


async def _answers(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
  """What it was asked, once all that could be done at once has been."""
  task = asyncio.ensure_future(coroutine)
  for _ in range(20):
    await asyncio.sleep(0)
  return task


def _report(steps: int, *episodes: collector.EndedEpisode) -> collector.Report:
  return collector.Report(steps, windows=steps, episodes=episodes)


def _episode(steps_before: int, regret: float) -> collector.EndedEpisode:
  totals = {"total_regret": regret}
  return collector.EndedEpisode(steps_before, 1.0, 2, "policy", {}, totals)


def test_actors_wait_for_weights_and_then_for_the_learner():
  async def check() -> None:
    held = _collector()
    first = await _answers(held.pull(0, collector.Report()))
    assert not first.done()
    await held.publish(_version(0), last=False)
    assert (await first) == collector.Grant(4, 0, _version(0))
    assert (await held.pull(1, collector.Report())).steps == 4
    # The first window comes when eight steps are granted, of which the last is due one.
    assert (await held.pull(0, _report(4))).steps == 4
    again = await _answers(held.pull(1, _report(4)))
    assert not again.done()  # Sixteen would make nine due, and six are tolerated.
    assert await held.learn(0, {}) == collector.Task(1 + 6, (True,))
    learning = await held.learn(3, {"loss": 1.0})
    assert learning.updates == 1 + 6 - 3
    assert (await again).steps == 4 and (await again).env_steps == 8

  asyncio.run(check())


def test_episodes_are_counted_in_the_order_of_reports_and_totals_added():
  async def check() -> None:
    held = _collector(num_episodes=3)
    await held.publish(_version(0), last=False)
    await held.pull(0, collector.Report())
    await held.pull(1, collector.Report())
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
    assert (await held.pull(1, collector.Report())).steps == 0

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
    grant = await held.pull(0, collector.Report())
    while grant.steps:
      pulling = await _answers(held.pull(0, _report(grant.steps)))
      while not pulling.done():
        updates += (await held.learn(updates, {})).updates
        learning = await _answers(held.learn(updates, {}))
        if not learning.done():
          learning.cancel()
      grant = await pulling
    while allowed := (await held.learn(updates, {})).updates:
      updates += allowed
    news = await held.news()
    assert news.env_steps == 20 and 17 <= updates <= 17 + 6

  asyncio.run(check())


@pytest.mark.parametrize("how", ["stop", "last"])
def test_the_evaluator_is_summoned_when_it_is_due(how):
  async def check() -> None:
    held = _collector(eval_every=4, evaluates=True)
    waiting = await _answers(held.summons(0))
    await held.publish(_version(0), last=False)
    await held.pull(0, collector.Report())
    assert not waiting.done()
    await _answers(held.pull(0, _report(4)))
    assert (await waiting) == collector.Summons(4, _version(0), last=False)
    waiting = await _answers(held.summons(4))
    assert not waiting.done()
    if how == "stop":
      await held.stop()
      assert (await waiting) is None
    else:
      await held.publish(_version(1), last=True)
      assert (await waiting) == collector.Summons(4, _version(1), last=True)

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
    await held.pull(0, collector.Report())
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
