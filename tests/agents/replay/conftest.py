"""Agents that declare a replay and nothing more, and readers of what replay holds."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.replay import adder, calls, memory
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import encodings, specs


def _declare(
  replay: types.ReplaySpec,
  extras: dict[str, tuple[tuple[int, ...], Any]] | None = None,
  observations: dm_env.specs.Array = dm_env.specs.Array((), np.float32),  # noqa: B008
  initial_priority: types.InitialPriority | None = None,
) -> types.Agent:
  actions = dm_env.specs.DiscreteArray(4)
  return types.Agent(
    config=None,
    spec=specs.EnvironmentSpec(observations, actions),
    encoding=encodings.make(observations),
    extras_spec={
      name: jax.ShapeDtypeStruct(shape, dtype)
      for name, (shape, dtype) in (extras or {}).items()
    },
    actor=lambda evaluation=False: None,
    learner=types.LearnerCore(None, None, None),
    replay=replay,
    initial_priority=initial_priority,
  )


def _initial_priority(rows: types.Rows, starts_episode: jax.Array) -> jax.Array:
  """Tells which rows there are, in which order, and whether they start an episode."""
  place = jnp.arange(1.0, 1.0 + rows["mask"].shape[1])[None]
  total = jnp.sum(place * rows["value"] + rows["mask"] * rows["reward"] ** 2, axis=1)
  return total + 100.0 * starts_episode


@pytest.fixture
def initial_priority() -> types.InitialPriority:
  """Σ_i (i value_i + mask_i r_i²), and 100 if the window starts an episode."""
  return _initial_priority


@pytest.fixture
def declare() -> Callable[..., types.Agent]:
  """(ReplaySpec, {extra: (shape, dtype)}) → an Agent whose cores are never called."""
  return _declare


class _FromAnotherProcess(memory.MemoryReplay):
  """A replay in memory whose adders' calls arrive before a batch is drawn."""

  def __init__(self, agent: types.Agent):
    super().__init__(agent, 0)
    self._recorders: list[tuple[calls.CallRecorder, adder.Writer]] = []

  def writer(self) -> Any:
    self._recorders.append((calls.CallRecorder(), super().writer()))
    return self._recorders[-1][0]

  def sample(self) -> tuple[np.ndarray, types.Sample]:
    for recorder, writer in self._recorders:
      calls.make(pickle.loads(pickle.dumps(recorder.take())), writer)
    return super().sample()


_BACKENDS = ("memory", "calls", pytest.param("reverb", marks=pytest.mark.reverb))


@pytest.fixture(params=_BACKENDS)
def make_replay(request) -> Iterator[Callable[[types.Agent], builder_lib.Replay]]:
  """(agent) → the replay of one backend; a test runs with each of them."""
  stores: list[builder_lib.Replay] = []

  def make(agent: types.Agent) -> builder_lib.Replay:
    if request.param == "calls":
      stores.append(_FromAnotherProcess(agent))
    else:
      stores.append(builder_lib.Builder(agent).make_replay_tables(request.param, 0))
    return stores[-1]

  yield make
  for store in stores:
    store.close()


def _collect(replay: builder_lib.Replay, num_batches: int = 40) -> dict[float, Any]:
  """First observation → (key, row columns, first-row columns) of each window drawn."""
  windows = {}
  batches = replay.batches()
  for _ in range(num_batches):
    keys, sample = next(batches)
    for i, key in enumerate(keys):
      name = float(sample.rows["observation"][i, 0])
      rows = {column: values[i] for column, values in sample.rows.items()}
      first = {column: values[i] for column, values in sample.first.items()}
      windows[name] = (key, rows, first)
  return windows


@pytest.fixture
def collect() -> Callable[..., dict[float, Any]]:
  """(replay) → all of its windows, each named by its first observation."""
  return _collect
