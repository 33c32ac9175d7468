"""Tests of the number of threads that processes compute with."""

import os
import pathlib
import subprocess
import sys

import pytest

_SCRIPT = """
import os, sys
from explorax.experiments import threads
if sys.argv[1] == "one":
  threads.use_one_thread()
import jax.numpy as jnp
jnp.ones(()).block_until_ready()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="needs Linux")
def test_use_one_thread():
  counts = {}
  for what in ("one", "as the shell says"):
    environment = os.environ | {"PJRT_NPROC": "9", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
      [sys.executable, "-c", _SCRIPT, what],
      env=environment,
      capture_output=True,
      text=True,
      check=True,
    )
    counts[what] = int(done.stdout)
  # XLA has a pool at least to compute with.
  assert counts["as the shell says"] - counts["one"] >= 8
