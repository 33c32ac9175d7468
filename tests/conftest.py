"""What all tests share: the CPU, strict shapes, compiled programs, random examples."""

import gc
import importlib.util
import os
import pathlib
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

# Before anything imports jax, which reads these once; processes that tests start
# inherit them. Workers, their processes and later runs share what has been compiled.
# Programs that compile almost as fast as they load are not kept.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
  "JAX_COMPILATION_CACHE_DIR",
  str(pathlib.Path(__file__).resolve().parents[1] / ".cache/jax"),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# For `fakes`, which the processes that tests start import, too (pytest's `pythonpath`).
os.environ["PYTHONPATH"] = os.pathsep.join(
  [
    *filter(None, [os.environ.get("PYTHONPATH")]),
    str(pathlib.Path(__file__).resolve().parent),
  ]
)

import dm_env
import haiku  # noqa: F401
import hypothesis
import jax
import jax.numpy as jnp
import pytest

from explorax.agents.wiring import threefry
from explorax.experiments import processes

# With JAX's own loop the bits are the same, and programs compile in half the time.
pytest.MonkeyPatch().setattr(threefry, "unroll_on_cpu", lambda: None)
processes.prepare()  # Before a test imports Ray.
signal.signal(signal.SIGINT, signal.default_int_handler)  # Shells' jobs ignore it.

# Where Flax is not installed, Haiku puts an object among the loaded modules that raises
# whatever it is asked for, and hypothesis asks every module for its file.
if not isinstance(sys.modules.get("haiku.experimental.flax"), types.ModuleType):
  sys.modules.pop("haiku.experimental.flax", None)

hypothesis.settings.register_profile(
  "explorax",
  deadline=None,  # An example may compile.
  derandomize=True,
  max_examples=20,
)
hypothesis.settings.load_profile("explorax")


# The tests by which coverage is measured; measuring makes tests a fifth slower.
TESTS = pathlib.Path(__file__).resolve().parent
MEASURED = (TESTS / "losses", TESTS / "exploration")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Skips what needs Reverb where there is none; limits coverage to `MEASURED`."""
  has_reverb = importlib.util.find_spec("reverb") is not None
  skip = pytest.mark.skip(reason="Reverb is not installed: explorax[reverb] has it.")
  for item in items:
    if not any(item.path.is_relative_to(folder) for folder in MEASURED):
      item.add_marker(pytest.mark.no_cover)
    if not has_reverb and item.get_closest_marker("reverb") is not None:
      item.add_marker(skip)


def pytest_collection_finish() -> None:
  """Spares collections of garbage: tracing allocates much, and what lasts is large."""
  gc.freeze()
  gc.set_threshold(200_000, 20, 100)


@pytest.fixture(autouse=True)
def _strict_rank_promotion() -> Iterator[None]:
  """Makes jax refuse to broadcast arrays of different ranks."""
  with jax.numpy_rank_promotion("raise"):
    yield


def _trace(agent: Any) -> tuple[Any, ...]:
  from explorax.agents import types

  replay, observation = agent.replay, agent.encoding.spec
  one = jax.ShapeDtypeStruct((), jnp.float32)
  columns = {
    "observation": observation,
    "action": jax.ShapeDtypeStruct((), jnp.int32),
    **dict.fromkeys(("reward", "discount", "mask"), one),
    **{name: agent.extras_spec[name] for name in replay.extras},
  }

  def batch(column: Any, *rows: int) -> jax.ShapeDtypeStruct:
    shape = (replay.batch_size, *rows, *column.shape)
    return jax.ShapeDtypeStruct(shape, column.dtype)

  sample = types.Sample(
    rows={name: batch(x, replay.window_rows) for name, x in columns.items()},
    first={name: batch(agent.extras_spec[name]) for name in replay.first_row_extras},
    probabilities=batch(one),
    population=jax.ShapeDtypeStruct((), jnp.int32),
  )

  def live(key: jax.Array, sample: types.Sample) -> tuple[Any, ...]:
    state = agent.learner.init(key)
    after, output = agent.learner.update(state, sample)
    states, actions = [(state, after)], []
    params = types.ActorParams(agent.learner.params(state), jnp.int32(0))
    seen = jnp.zeros(observation.shape, observation.dtype)
    timestep = dm_env.TimeStep(jnp.int32(0), jnp.float32(0), jnp.float32(1), seen)
    for core in (agent.actor(), agent.actor(evaluation=True)):
      state = core.init(key, 0, 1)
      action, after = core.select_action(params, timestep, state)
      states.append((state, after))
      actions.append(action)
    return *zip(*states, strict=True), actions, output

  return jax.eval_shape(live, jax.random.PRNGKey(0), sample)


@pytest.fixture(scope="session")
def trace() -> Callable[[Any], tuple[Any, ...]]:
  """(agent) → (states before, states after, actions, LearnerOutput), of shapes alone.

  Of the learner in an update; of the actor, and of the evaluation's, in a step.
  """
  return _trace
