"""Benchmarks of the sequence agents: what is asked for, and what is measured."""

import dataclasses
import itertools
import sys

import dm_env
import numpy as np
import pytest

from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import specs
from explorax.experiments import presets


@pytest.fixture(scope="module")
def sequences(load):
  return load("sequences")


@pytest.fixture(scope="module")
def samples(load):
  return load("sequences_sample")


@pytest.fixture
def asked(sequences, monkeypatch):
  """What was asked for, answered by `answers`: what → a result."""
  calls = []

  def sample(what, platform="cpu", **flags):
    calls.append((what, platform, flags))
    return dict(calls.answers[what])

  calls = type("Calls", (list,), {"answers": {}})()
  monkeypatch.setattr(sequences, "sample", sample)
  return calls


def test_the_section_has_three_tables(load, sequences):
  tables = load("run").SECTIONS["sequences"]()
  assert [table.title for table in tables] == [
    "Acting on Pong: steps per second",
    "Replay of frames in Reverb",
    "Learner of ngu",
  ]


def test_acting_asks_for_each_agent(sequences, asked):
  asked.answers["acting"] = {"share": 0.5}
  rows = sequences.measure_acting(quick=True)
  assert [row["agent"] for row in rows] == ["r2d2", "r2d2_retrace", "ngu"]
  assert all(row["share"] == 0.5 for row in rows)
  for agent, (what, platform, flags) in zip(sequences.AGENTS, asked, strict=True):
    assert (what, platform) == ("acting", "cpu")
    assert flags == {"agent": agent, "env": "atari:Pong", "rounds": 3, "steps": 100}


def test_only_pong_has_a_goal_and_only_where_it_was_measured(sequences, asked):
  asked.answers["replay"] = {"mib_per_100k_steps": 90.0}
  pong, *others = sequences.measure_replay_memory()
  assert pong == {"game": "Pong", "mib_per_100k_steps": 90.0, "goal_mib": 150.0}
  assert len(others) == 2 and not any("goal_mib" in row for row in others)
  assert [flags["steps"] for _, _, flags in asked] == [100_000, 20_000, 20_000]

  asked.answers["replay"] = {"note": "not measured"}
  assert sequences.measure_replay_memory(quick=True)[0] == {
    "game": "Pong",
    "note": "not measured",
  }
  assert {flags["steps"] for _, _, flags in asked[3:]} == {5000}


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_lower_precisions_are_for_a_gpu(sequences, asked, platform):
  asked.answers["learner"] = {"platform": platform}
  rows = sequences.measure_learner()
  precisions = [flags["precision"] for _, _, flags in asked]
  lower = ["tensorfloat32", "bfloat16"] if platform == "gpu" else []
  assert precisions == ["float32", *lower]
  assert [row.get("goal") for row in rows] == [None] + [50.0] * len(lower)
  assert {asked_for for _, asked_for, _ in asked} == {None}  # No device is forced.


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


def test_a_loop_goes_on_where_it_was(load):
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


def test_the_bare_loop_never_runs_out_of_actions(load):
  environment = _Episodes()
  load("loops").bare(environment, np.random.default_rng(0)).run(20_001)
  actions = environment.calls.replace("|", "")
  assert len(actions) == 20_001 and set(actions) == {"0", "1"}


def test_only_waiting_is_waiting(samples, monkeypatch):
  now = itertools.count()  # Each look at the clock takes a second.
  monkeypatch.setattr(samples.time, "perf_counter", lambda: next(now))
  waited = samples._Waited(iter("ab"))
  assert list(waited) == ["a", "b"]
  assert waited.seconds == 3  # Twice for a value, and once for the end.


def test_raw_bytes_of_a_step(samples):
  spec = specs.EnvironmentSpec(
    dm_env.specs.Array((84, 84, 1), np.uint8), dm_env.specs.DiscreteArray(18)
  )
  config = presets.PRESETS["ngu"].config_for("atari:Pong")
  agent = r2d2_agent.make_agent(config, spec)
  # Action, reward, discount, mask, probability, policy, novelty; and once every 40
  # rows the two parts of an LSTM of 512 units, whether the episode starts there, and
  # the three inputs of the step before.
  row, first = 84 * 84 + 7 * 4, 2 * 512 * 4 + 4 * 4
  assert samples._raw_bytes_per_step(agent) == row + first / 40


def test_acting_is_measured_beside_the_environment(samples, monkeypatch):
  def missing():
    raise ImportError("not here")

  monkeypatch.setattr(builder_lib, "import_reverb_replay", missing)
  result = samples.measure_acting("r2d2", "bsuite:catch/0", 3, steps=20, warm_up=20)
  assert result["replay"] == "memory"
  assert result["compilations"] == 0
  # Episodes of nine transitions, a window each: 80 steps are eight of them, and the
  # ninth has not ended.
  assert result["windows"] == 8
  assert {len(speeds) for speeds in result["samples"].values()} == {3}
  assert result["actor_steps_per_s"] in result["samples"]["actor"]
  assert result["share"] == (
    result["actor_steps_per_s"] / result["environment_steps_per_s"]
  )


def test_without_reverb_there_is_a_note(samples, monkeypatch):
  def missing():
    raise ImportError("Reverb cannot be imported (no wheel)")

  monkeypatch.setattr(builder_lib, "import_reverb_replay", missing)
  assert samples.measure_replay("r2d2", "bsuite:catch/0", 10) == {
    "note": "not measured: Reverb cannot be imported (no wheel)"
  }


def _small_config():
  return dataclasses.replace(
    presets.PRESETS["r2d2"].config,
    torso="small",
    hidden_sizes=(),
    lstm_size=8,
    head_size=8,
    sequence_length=6,
    sequence_period=3,
    batch_size=2,
  )


@pytest.mark.parametrize(
  ("updates", "seconds", "made"), [(1, 1e6, 1), (5, 0.0, 2), (3, 1e6, 3)]
)
def test_the_learner_stops_after_updates_or_seconds(
  samples, monkeypatch, updates, seconds, made
):
  """The updates are counted in the learner, which is not compiled for this."""
  steps = []

  class Learner:
    step = staticmethod(lambda: steps.append(1))
    is_finite = staticmethod(lambda: True)
    get_variables = staticmethod(lambda names: [np.zeros(1)])

  monkeypatch.setattr(
    samples.builder_lib.Builder, "make_learner", lambda *args: Learner
  )
  result = samples.measure_learner(
    _small_config(), "float32", updates, seconds, warm_up=4
  )
  assert result["updates"] == made and len(steps) == 4 + made


def test_the_learner_is_measured(samples):
  result = samples.measure_learner(_small_config(), "float32", 3, 1e6, warm_up=1)
  assert result["platform"] == "cpu" and result["batch"] == "2 x 6"
  assert result["precision"] == "float32"
  assert result["updates"] == 3 and result["compilations"] == 0
  assert result["updates_per_s"] > 0
  assert 0 < result["share_waiting_for_replay"] < 1


def test_what_is_asked_for_is_measured(samples, monkeypatch, capsys):
  asked = []
  for what in ("acting", "replay", "learner"):
    monkeypatch.setattr(
      samples, f"measure_{what}", lambda *args, what=what: asked.append(args) or what
    )
    monkeypatch.setattr(sys, "argv", ["", what])
    samples.main()
  ngu = presets.PRESETS["ngu"].config_for("atari:Pong")
  assert asked == [
    ("ngu", "atari:Pong", 7, 500, 900),
    ("ngu", "atari:Pong", 100_000),
    (ngu, "float32", 500, 20.0, 2),
  ]
  assert capsys.readouterr().out == '"acting"\n"replay"\n"learner"\n'


@pytest.mark.parametrize(
  "arguments", [["nothing"], ["replay", "--updates=1"], ["learner", "--precision=half"]]
)
def test_what_cannot_be_measured_is_refused(samples, monkeypatch, capsys, arguments):
  monkeypatch.setattr(sys, "argv", ["", *arguments])
  with pytest.raises(SystemExit):
    samples.main()
  assert arguments[-1].split("=")[-1] in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.reverb
def test_replay_of_frames_is_measured(sequences):
  pytest.importorskip("ale_py")
  pytest.importorskip("cv2")
  result = sequences.sample("replay", env="atari:Pong", steps=1000)
  assert result["env_steps"] == 1000
  assert result["mib_per_100k_steps"] == pytest.approx(
    result["bytes_per_step"] * 1e5 / 2**20
  )
  # Sequences of 80 of an episode that does not end: every 40 rows from row 81 on.
  assert result["windows"] == (1000 - 81) // 40 + 1
  assert 0 < result["bytes_per_step"] < result["raw_bytes_per_step"]
