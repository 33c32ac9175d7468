"""What holds actors and learner together, against a simulation that could hang."""

import math
import random

import pytest

from explorax.experiments.distributed import rates


def _simulate(
  limits: rates.Limits, num_actors: int, seed: int, windows_from: int = 1
) -> tuple[rates.Rates, float, float]:
  """Random turns until nobody can go on; (rates, most ahead, most behind).

  Both are of due updates against those made, in the learner's favour and the actors'.
  An actor's grant is taken in one turn and reported in a later one; no window exists
  in replay before `windows_from` steps of the actor.
  """
  chance = random.Random(seed)
  held = rates.Rates(limits, num_shards=min(2, num_actors))
  granted = dict.fromkeys(range(num_actors), 0)
  taken = dict.fromkeys(range(num_actors), 0)
  behind, ahead = 0.0, 0.0
  while True:
    moves = [actor for actor in granted if granted[actor]]
    for actor in granted:
      if not granted[actor]:
        steps = held.grant(actor)
        if steps:
          granted[actor] = steps
          moves.append(actor)
    allowed = held.updates_allowed()
    behind = max(behind, held.due(held.steps_granted) - held.updates)
    over = held.at_limit and held.all_reported and not any(granted.values())
    if over:
      held.updates += held.updates_left()
      return held, ahead, behind
    turns = [*moves, *(["learner"] * (2 * bool(allowed)))]
    assert turns, (held.why_learner_waits(), held.why_actors_wait())
    turn = chance.choice(turns)
    if turn == "learner":
      held.updates += chance.randint(1, allowed)
      ahead = max(ahead, held.updates - held.due(held.env_steps))
    else:
      steps, granted[turn] = granted[turn], 0
      taken[turn] += steps
      shard = turn % min(2, num_actors)
      held.report(turn, steps, shard, windows=int(taken[turn] >= windows_from))


@pytest.mark.parametrize("updates_per_step", [0.07, 0.25, 1.0, 1.7, 4.0])
@pytest.mark.parametrize("num_actors", [1, 2, 5])
def test_nobody_waits_for_ever_and_the_tolerance_is_kept(updates_per_step, num_actors):
  least = rates.least_tolerance(updates_per_step)
  for seed in range(12):
    chance = random.Random(seed)
    limits = rates.Limits(
      updates_per_step=updates_per_step,
      min_size=chance.choice([0, 1, 7, 60]),
      tolerance=least if seed < 6 else least + chance.randint(1, 40),
      pull_every=chance.choice([1, 3, 10, 50]),
      num_steps=400,
    )
    held, ahead, behind = _simulate(
      limits, num_actors, seed, windows_from=chance.choice([1, 30])
    )
    assert held.env_steps == 400
    tolerated = updates_per_step * limits.tolerance + 1e-6
    assert ahead <= tolerated and behind <= tolerated
    assert abs(held.due(400) - held.updates) < max(1, tolerated)


def test_a_smaller_tolerance_is_refused():
  """As it has to be: with a grant of one step, the simulation does hang."""
  for updates_per_step in (0.25, 1.0, 3.0):
    least = rates.least_tolerance(updates_per_step)
    with pytest.raises(ValueError, match=f"use at least {least}"):
      rates.Limits(updates_per_step, 1, least - 1, 1)
  limits = rates.Limits(0.25, 1, 3, 1, 200)
  object.__setattr__(limits, "tolerance", 1)
  with pytest.raises(AssertionError, match="rate tolerance allow"):
    _simulate(limits, 1, 0)


def test_updates_are_due_as_in_the_local_runner():
  """From the step on with which replay has its minimum: the first one included."""
  held = rates.Rates(rates.Limits(0.5, 6, 100, 3), num_shards=1)
  for _ in range(2):
    assert held.grant(0) == 3
    held.report(0, 3, 0, windows=3)
  assert held.due(6) == 0.5 and held.updates_left() == 0
  assert held.grant(0) == 3
  assert held.steps_granted == 9 and held.env_steps == 6 and not held.all_reported
  held.report(0, 2, 0, windows=2)  # Its environment has crashed.
  assert held.env_steps == 8 and held.due(8) == 1.5 and held.updates_left() == 1
  assert held.updates_allowed() == math.floor(1.5 + 50)


def test_nothing_is_learnt_before_replay_has_its_minimum_and_a_window():
  held = rates.Rates(rates.Limits(1.0, 6, 100, 5), num_shards=2)
  held.grant(0)
  held.report(0, 5, 0, windows=0)
  assert held.updates_allowed() == 0
  assert "begins after 6 environment steps" in held.why_learner_waits()
  held.grant(0)
  held.report(0, 5, 0, windows=0)
  assert held.updates_allowed() == 0 and held.filled == (False, False)
  assert "no whole window" in held.why_learner_waits()
  held.grant(1)
  held.report(1, 5, 1, windows=1)
  assert held.filled == (False, True)
  assert held.updates_left() == 1 and held.updates_allowed() == 101


def test_steps_end_at_the_limit_exactly():
  held = rates.Rates(rates.Limits(1.0, 100, 100, 8, num_steps=20), num_shards=1)
  assert [held.grant(actor) for actor in range(4)] == [8, 8, 4, 0]
  assert held.at_limit and not held.all_reported
  for actor, steps in enumerate((8, 8, 4)):
    held.report(actor, steps, 0, 0)
  assert held.env_steps == 20 and held.all_reported and held.grant(0) == 0


@pytest.mark.parametrize("updates_per_step", [0.07, 1.0, 4.0])
def test_nobody_waits_for_ever_where_replay_is_lost_and_the_learner_set_back(
  updates_per_step,
):
  for seed in range(20):
    chance = random.Random(seed)
    least = rates.least_tolerance(updates_per_step)
    limits = rates.Limits(updates_per_step, 30, least + seed, 10, num_steps=400)
    held = rates.Rates(limits, num_shards=1)
    granted = dict.fromkeys(range(3), 0)
    faults = sorted(chance.sample(range(20, 350), 3))
    while not (held.at_limit and held.all_reported):
      for actor in granted:
        granted[actor] = granted[actor] or held.grant(actor)
      allowed = held.updates_allowed()
      moves = [actor for actor in granted if granted[actor]]
      turns = [*moves, *(["learner"] * bool(allowed))]
      assert turns, (seed, held.why_learner_waits(), held.why_actors_wait())
      turn = chance.choice(turns)
      if turn == "learner":
        held.updates += chance.randint(1, allowed)
      else:
        steps, granted[turn] = granted[turn], 0
        held.report(turn, steps, 0, windows=1)
      if faults and held.env_steps >= faults[0]:
        faults.pop(0)
        how = chance.choice(["replay", "learner", "actor"])
        if how == "replay":
          held.replace(0, 0)
          assert not held.updates_allowed()
        elif how == "learner":
          held.updates = chance.randint(0, held.updates)
        else:
          held.drop(0)
          granted[0] = 0
    assert held.env_steps == 400


def test_what_is_saved_is_gone_on_with():
  held = rates.Rates(rates.Limits(0.5, 6, 100, 3), num_shards=2)
  for windows in (3, 3, 2):
    held.grant(0)
    held.report(0, 3, 0, windows)
  held.updates = 1
  held.replace(0, 0)
  held.grant(1)
  held.report(1, 3, 1, windows=1)
  other = rates.Rates(rates.Limits(0.5, 6, 100, 3), num_shards=2)
  other.restore(held.save())
  for steps in range(40):
    assert other.due(steps) == held.due(steps)
  # Learning goes on after six steps more than the nine when replay was lost.
  assert held.due(14) == 1 and held.due(15) == 1.5 and held.filled == (False, True)
