"""The number of threads that processes compute with."""

import os
import pathlib
import subprocess
import sys

import pytest

_SCRIPT = """
import os, sys
from explorax.experiments.tasks import execution
if sys.argv[1] == "a task":
  execution.prepare_worker(os.getcwd(), None)
import jax
import jax.numpy as jnp
jnp.ones(()).block_until_ready()
print(len(os.listdir("/proc/self/task")))
print(jax.config.values["jax_cpu_enable_async_dispatch"])
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="needs Linux")
def test_use_one_thread():
  counts, hands_over = {}, {}
  for what in ("a task", "as the shell says"):
    environment = os.environ | {"PJRT_NPROC": "9", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
      [sys.executable, "-c", _SCRIPT, what],
      env=environment,
      capture_output=True,
      text=True,
      check=True,
    )
    count, flag = done.stdout.split()
    counts[what], hands_over[what] = int(count), flag == "True"
  # XLA has a pool at least to compute with.
  assert counts["as the shell says"] - counts["a task"] >= 8
  assert hands_over == {"a task": False, "as the shell says": True}
