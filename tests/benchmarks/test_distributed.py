"""Benchmarks of the distributed runner: what is asked for, counted and concluded."""

import itertools
import json
import os
import pickle
import queue
import socket
import time
import types

import jax
import numpy as np
import pytest

from explorax.agents import types as agent_types
from explorax.agents.wiring import adder
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments import threads
from explorax.experiments.distributed import learner_process, weights
from explorax.experiments.runners import core

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def distributed(load):
  return load("distributed")


@pytest.fixture(scope="module")
def samples(load):
  return load("distributed_sample")


@pytest.fixture
def asked(distributed, monkeypatch):
  """What was asked for, answered by `answers`: what → flags → a result."""
  calls = type("Calls", (list,), {"answers": {}})()

  def sample(what, case, **flags):
    calls.append((what, case, flags))
    return dict(calls.answers[what](flags))

  monkeypatch.setattr(distributed, "sample", sample)
  return calls


def test_the_section_has_five_tables(load, distributed):
  tables = load("run").SECTIONS["distributed"]()
  assert [table.measure.__name__ for table in tables] == [
    "measure_acting",
    "measure_learner",
    "measure_weights",
    "measure_recovery",
    "measure_scaling",
  ]


def test_ways_of_acting_take_turns(distributed, asked):
  speeds = {"ray": iter((80, 10, 70)), "plain": iter((100, 90, 200)), "bare": None}
  again = {how: list(each or (7, 7, 7)) * 6 for how, each in speeds.items()}

  def answer(flags):
    return {"steps_per_s": float(again[flags["how"]].pop(0))}

  asked.answers["acting"] = answer
  rows = distributed.measure_acting()
  assert [(row["agent"], row["actors"]) for row in rows] == [
    (agent, number) for agent in ("r2d2", "dqn") for number in (1, 2, 4)
  ]
  hows = [flags["how"] for _, _, flags in asked]
  assert hows == ["ray", "plain", "bare"] * 18
  assert rows[0]["ray_and_reverb_steps_per_s"] == 70
  assert rows[0]["without_steps_per_s"] == 100
  assert rows[0]["environment_steps_per_s"] == 7
  assert rows[0]["share"] == 0.7 and rows[0]["goal"] == 0.8


def _costs(scaling, **changes):
  costs = {
    "steps_per_s": 500.0,
    "insert_bytes_per_step": 1000.0,
    "insert_us_per_item": 200.0,
    "steps_per_item": 40.0,
    "sample_bytes_per_item": 100_000.0,
    "sample_us_per_item": 50.0,
    "weights_mib": 10.0,
    "publish_ms": 20.0,
    "fetch_ms": 5.0,
    "pull_us": 1000.0,
    "pull_every": 400,
    "batch_size": 64,
    "updates_per_step": 0.01,
  }
  return scaling.Costs(**{**costs, **changes})


def test_demands_follow_from_the_costs(load):
  scaling = load("scaling")
  cluster = scaling.Cluster(
    num_actors=100, actors_per_machine=30, bytes_per_s=1e9, replay_cores=2
  )
  found = scaling.demands(_costs(scaling), cluster, 50_000.0)
  asked = {demand.part: (demand.asked, demand.limit) for demand in found}
  # 50,000 steps are 1250 items, 125 reports and 500 updates; 50 of these are made,
  # from 3200 items, and every fourth is published to four machines.
  assert asked == {
    "actors: acting": (50_000, 50_000),
    "actors: reading weights": (pytest.approx(1.25 * 0.005), 1),
    "learner: updates due": (500, 50),
    "learner: publishing": (pytest.approx(12.5 * 0.02), 1),
    "learner's network: weights": (pytest.approx(4 * 12.5 * 10.48576), 1000),
    "replay's network: inserts": (pytest.approx(50), 1000),
    "replay's network: samples": (pytest.approx(320), 1000),
    "replay's processor": (pytest.approx(1250 * 200e-6 + 3200 * 50e-6), 2),
    "collector's processor": (pytest.approx(0.125), 1),
  }
  assert scaling.bottleneck(found).part == "learner: updates due"


def test_the_first_bottleneck_is_named_and_the_one_after_it(load):
  scaling = load("scaling")
  *rows, first, then = scaling.table(_costs(scaling), scaling.Cluster(num_actors=100))
  assert first == {"part": "first bottleneck: learner: updates due", "share": 10.0}
  # A tenth of the updates are as many as the learner makes. An actor's 400 steps are
  # worth less than one then, and each is published.
  network = "learner's network: weights"
  assert then["part"] == f"with 0.001 updates per step: {network}"
  by_part = {row["part"]: row for row in rows}
  assert by_part["learner: updates due"]["share_then"] == pytest.approx(1.0)
  assert by_part["learner: publishing"]["asked_with_fewer_updates"] == 1.0
  weights = by_part[network]
  assert weights["share_then"] == then["share_then"]
  assert weights["share_then"] == pytest.approx(4 * weights["share"])
  assert by_part["collector's processor"]["share_then"] == pytest.approx(0.125)


def test_costs_come_from_their_samples(distributed, asked):
  asked.answers = {
    "replay": lambda flags: {
      "insert_bytes_per_step": 1.0,
      "insert_us_per_item": 2.0,
      "steps_per_item": 3.0,
      "sample_bytes_per_item": 4.0,
      "sample_us_per_item": 5.0,
      "batches_per_s": 0.0,
    },
    "weights": lambda flags: {"mib": 6.0, "publish_ms": 7.0, "fetch_ms": 8.0},
    "acting": lambda flags: {"steps_per_s": 800.0, "cores": {"collector": 0.1}},
    "settings": lambda flags: {
      "pull_every": 40,
      "batch_size": 64,
      "updates_per_step": 0.0625,
    },
  }
  costs = distributed.measure_costs()
  assert costs.pull_us == pytest.approx(5000.0)  # Twenty a second take a tenth.
  assert (costs.steps_per_s, costs.weights_mib, costs.pull_every) == (800.0, 6.0, 40)
  hows = [(case[0], flags) for what, case, flags in asked if what == "acting"]
  assert hows == [
    ("r2d2", {"how": "ray", "num_actors": 1, "seconds": 20}),
    ("dqn", {"how": "ray", "num_actors": 2, "seconds": 20}),
  ]
  assert distributed.measure_scaling()[-1]["costs"] == vars(costs)


def _episode(actor: int, env_steps: int, wall_seconds: float) -> core.Episode:
  return core.Episode(
    episode=1,
    env_steps=env_steps,
    episode_return=0.0,
    episode_length=1,
    policy="policy",
    learner_updates=env_steps // 4,
    steps_per_second=float("nan"),
    wall_seconds=wall_seconds,
    metrics={"actor": float(actor)},
  )


def test_counting_begins_once_all_act_and_ends_in_time(samples):
  window = samples._Window(num_actors=2, seconds=10.0)
  window.on_processes({"actor 0": os.getpid()})
  for actor, steps, wall in ((0, 10, 1), (0, 20, 2), (0, 30, 3), (1, 40, 4)):
    window.on_episode(_episode(actor, steps, wall))
    with pytest.raises(RuntimeError, match="before its actors"):
      window.result()
  window.on_episode(_episode(1, 100, 5.0))
  window.on_episode(_episode(0, 300, 14.0))
  assert not window.is_over()
  window.on_episode(_episode(1, 500, 15.0))
  assert window.is_over()
  window.on_episode(_episode(1, 9999, 16.0))
  result = window.result()
  assert result["steps_per_s"] == 40.0 and result["updates_per_s"] == 10.0
  assert set(result["cores"]) == {"actor 0"} and result["cores"]["actor 0"] >= 0


def test_shares_of_the_learners_time(samples):
  spent = {"all": 10.0, "updating": 6.0, "for batches": 1.0, "publishing": 0.5}
  assert samples.shares(spent) == {
    "waiting": pytest.approx(0.45),
    "waiting_for_batches": pytest.approx(0.1),
    "updating": pytest.approx(0.5),
    "publishing": pytest.approx(0.05),
  }
  assert samples.shares({"all": 2.0})["waiting"] == 1.0


def test_a_stopwatch_counts_what_is_part_of_the_same_once(samples, monkeypatch):
  now = itertools.count()  # Each look at the clock takes a second.
  monkeypatch.setattr(samples.time, "perf_counter", lambda: next(now))
  watch = samples._Stopwatch()
  with watch("all"), watch("part"), watch("all"):
    pass
  with watch("part"):
    pass
  assert watch.seconds == {"all": 3, "part": 2}


def test_a_learner_counts_its_time_from_the_second_update_on(
  samples, tmp_path, monkeypatch
):
  agent = samples._make("dqn", "bsuite:catch/0")[1]
  rows = {
    name: np.zeros((agent.replay.batch_size, agent.replay.window_rows, *shape), dtype)
    for name, (shape, dtype) in adder.column_specs(agent).items()
  }
  probabilities = np.ones(agent.replay.batch_size, np.float32)
  sample = agent_types.Sample(rows, {}, probabilities, np.int32(9))

  def batches():
    while True:
      time.sleep(0.05)
      yield np.zeros(len(probabilities), np.uint64), sample

  path = tmp_path / "seconds.json"
  # As another process gets it, which has no such module.
  monkeypatch.setattr(samples._TimedProcess, "path", str(path))
  process = pickle.loads(ray.cloudpickle.dumps(samples._TimedProcess))
  for module, name in ((weights, "publish"), (learner_lib, "Learner")):
    monkeypatch.setattr(module, name, getattr(module, name))
  monkeypatch.setattr(learner_process.LearnerProcess, "__init__", lambda self: None)
  process()
  learner = learner_lib.Learner(agent, batches(), None, jax.random.PRNGKey(0))
  learner.step()
  assert learner.is_finite() and not path.exists()
  start = time.perf_counter()
  learner.step()
  assert learner.is_finite()
  spent = json.loads(path.read_text())
  assert 0.05 <= spent["for batches"] < spent["updating"] <= spent["all"]
  assert spent["all"] <= time.perf_counter() - start


@pytest.mark.parametrize("how", ["plain", "bare"])
def test_processes_without_ray_act(samples, how, monkeypatch):
  began = []  # This process is not one of its own, which would go on with one thread.
  monkeypatch.setattr(threads, "use_one_thread", lambda: began.append(how))
  results: queue.SimpleQueue = queue.SimpleQueue()
  barrier = types.SimpleNamespace(wait=lambda: None)
  samples._act(how, "dqn", "bsuite:catch/0", 1, 2, 0.2, barrier, results)
  speed, cores = results.get()
  assert speed > 100 and 0 < cores < 20 and began == [how]


def test_settings_are_those_of_the_preset_there(samples):
  assert samples.read_settings("r2d2", "bsuite:catch/0") == {
    "pull_every": 10,
    "batch_size": 32,
    "updates_per_step": 0.25,
  }


def test_a_proxy_counts_what_passes(load):
  processes = load("processes")
  with (
    socket.create_server(("localhost", 0)) as server,
    processes.Proxy(server.getsockname()[1]) as proxy,
    socket.create_connection(("localhost", proxy.port)) as ours,
  ):
    theirs, _ = server.accept()
    with theirs:
      ours.sendall(b"x" * 100_000)
      ours.shutdown(socket.SHUT_WR)
      assert len(b"".join(iter(lambda: theirs.recv(65536), b""))) == 100_000
      theirs.sendall(b"abc")
      theirs.shutdown(socket.SHUT_WR)
      assert b"".join(iter(lambda: ours.recv(10), b"")) == b"abc"
    assert (proxy.sent, proxy.received) == (100_000, 3)


def test_seconds_of_cpu_are_those_computed(load):
  processes = load("processes")
  before, start = processes.cpu_seconds(os.getpid()), time.process_time()
  while time.process_time() - start < 0.2:
    pass
  assert 0.15 <= processes.cpu_seconds(os.getpid()) - before < 5
