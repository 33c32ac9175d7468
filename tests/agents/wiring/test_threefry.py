"""Random bits on a CPU without a loop are those of JAX."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.wiring import threefry


@pytest.mark.parametrize(
  ("key", "count", "bits"),
  [  # The generator's own test vectors (Random123, kat_vectors).
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
  ],
)
def test_bits_are_those_of_the_generators_authors(key, count, bits) -> None:
  arguments = (jnp.uint32(x) for x in (*key, *count))
  np.testing.assert_array_equal(threefry.threefry2x32(*arguments), np.uint32(bits))


PROGRAM = """
import jax
from explorax.agents.wiring import threefry

threefry.unroll_on_cpu()
draw = jax.jit(lambda key: jax.random.fold_in(key, 7))
assert "while" not in draw.lower(jax.random.PRNGKey(3)).as_text()
assert draw(jax.random.PRNGKey(3)).tolist() == [2647473427, 4234374204]
"""


def test_jax_computes_the_same_bits() -> None:
  """In a process of its own: other tests have programs that compile in less time."""
  subprocess.run([sys.executable, "-P", "-c", PROGRAM], check=True)
