"""One smoke test of each benchmark that computes something itself."""

import sys

import dm_env
import numpy as np
import pytest

from explorax.experiments.tasks import types


class _Episodes(dm_env.Environment):
  """Episodes of three steps, whose calls are noted."""

  def __init__(self):
    self.calls = ""

  def reset(self):
    self.calls += "|"
    self._left = 3
    return dm_env.restart(np.zeros(2, np.float32))

  def step(self, action):
    self.calls += str(action)
    self._left -= 1
    make = dm_env.transition if self._left else dm_env.termination
    return make(1.0, np.zeros(2, np.float32))

  def observation_spec(self):
    return dm_env.specs.Array((2,), np.float32)

  def action_spec(self):
    return dm_env.specs.DiscreteArray(2)


def test_a_loop_resumes_where_it_was(load):
  environment = _Episodes()
  begun, observed = [], []
  loop = load("loops").Loop(
    environment,
    begun.append,
    lambda timestep: int(timestep.first()),
    lambda action, timestep: observed.append((action, timestep.last())),
  )
  assert loop.run(4) > 0
  loop.run(3)
  assert environment.calls == "|100|100|1"
  assert len(begun) == 3 and all(timestep.first() for timestep in begun)
  assert observed == [(1, False), (0, False), (0, True)] * 2 + [(1, False)]


def test_a_transition_in_replay_is_measured(load):
  found = load("deep_sea").replay_memory("memory", 2000)
  assert found["transitions"] == 2000 and found["row_bytes"] > 0


@pytest.mark.parametrize(
  ("name", "short", "found"),
  [
    ("distinct_priors", {"episodes": 3}, "solved_episode"),
    ("memory", {"steps": 40, "eval_every": 20}, "evaluations"),
    ("montezuma", {"steps": 40}, "rooms"),
  ],
)
def test_learning_is_measured(load, name, short, found):
  learning = load("learning")
  task = learning.tasks([name])[0]
  settings = {"preset": "dqn", "set": ["min_replay_size=1000"], **short}
  row = learning.train({**task.settings, **settings}, types.TaskContext())
  assert row["env"] == task.settings["env"] and row["seed"] == 0
  assert found in row
  assert name != "memory" or len(row["evaluations"]) == 2
  assert task.settings["label"] in learning.table([row])


def test_tables_of_learning_count_the_seeds_that_fail(load):
  table = load("learning").table
  same = {"label": "dqn", "env": "jax:catch"}
  solved = [{**same, "max_episodes": 20, "solved_episode": n} for n in (7, None, None)]
  shares = [
    {**same, "evaluations": [(1, r)], "training_last_100": r / 2} for r in (1.0, 0.0)
  ]
  runs = [{"seed": i, **row} for i, row in enumerate([*solved, *shares])]
  assert "| 1/3    | > 20 (7, > 20, > 20)" in table(runs[:3])
  # Clopper and Pearson: 1 of 2 is in [1 - √0.975, √0.975].
  assert "0.5 [0.0126, 0.987] (1, 0)" in table(runs[3:])


@pytest.mark.parametrize(
  ("module", "measure", "columns"),
  [
    ("deep_sea", "measure_speed", ("N", "replay")),
    ("device", "measure", ("N", "seeds")),
  ],
)
def test_runs_take_turns_with_bsuite_s(load, monkeypatch, module, measure, columns):
  """Processes are left out: ours make four steps a second, bsuite's agent one."""
  loaded = load(module)
  bench, asked = loaded.bench, []

  def sample(function, **arguments):
    asked.append(arguments)
    return {"steps_per_s": 1.0, "env_steps": arguments["steps"], "learner_updates": 0}

  def run_speed(flags, warm_up, platform="cpu"):
    (steps,) = (int(f.removeprefix("--steps=")) for f in flags if "--steps=" in f)
    updates = steps - 127 if module == "device" else 0
    return {"steps_per_s": 4.0, "env_steps": steps, "learner_updates": updates}

  monkeypatch.setattr(bench, "sample", sample)
  monkeypatch.setattr(bench, "run_speed", run_speed)
  rows = getattr(loaded, measure)()
  found = [tuple(row[name] for name in columns) for row in rows]
  second = ("reverb", "memory") if module == "deep_sea" else (1, 8)
  assert found == [(size, each) for size in (10, 50) for each in second]
  assert len(asked) == 6  # Three rounds of each size.
  assert {row["ratio_of_medians"] for row in rows} == {4.0}
  assert rows[0]["goal"] > 3 and len(rows[0]["samples"]["explorax"]) == 3


def test_a_peer_that_is_not_installed_is_named(load, monkeypatch):
  monkeypatch.setitem(sys.modules, "stable_baselines3", None)
  with pytest.raises(SystemExit, match="stable_baselines3 is not installed; run this"):
    load("expected_peers").run_sb3(seed=0, steps=10)
