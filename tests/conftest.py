"""What all tests share: the CPU, strict shapes, and repeatable random examples."""

import importlib.util
import os
import sys
import types
from collections.abc import Iterator

# Before anything imports jax, which looks at it once; processes that tests start
# inherit it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import haiku  # noqa: F401
import hypothesis
import jax
import pytest

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Skips what needs Reverb where there is none."""
  if importlib.util.find_spec("reverb") is not None:
    return
  skip = pytest.mark.skip(reason="Reverb is not installed: explorax[reverb] has it.")
  for item in items:
    if item.get_closest_marker("reverb") is not None:
      item.add_marker(skip)


@pytest.fixture(autouse=True)
def _strict_rank_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
  """Makes jax refuse to broadcast arrays of different ranks.

  `@pytest.mark.rank_promotion("allow")` lifts it from a test whose subject is code
  of others that relies on it.
  """
  marker = request.node.get_closest_marker("rank_promotion")
  with jax.numpy_rank_promotion(marker.args[0] if marker else "raise"):
    yield
