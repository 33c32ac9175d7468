"""Samples in processes of their own, and what a process sees of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture(scope="module")
def processes(load):
  return load("processes")


@pytest.fixture
def script(tmp_path):
  path = tmp_path / "sample.py"
  path.write_text(
    "import json, os; print('noise'); print(json.dumps([os.environ.get(name) "
    "for name in ('XLA_FLAGS', 'JAX_PLATFORMS')]))"
  )
  return path


def test_a_failing_sample_says_why(processes, tmp_path):
  script = tmp_path / "sample.py"
  script.write_text("import sys; sys.exit(f'cannot do {sys.argv[1:]}')")
  with pytest.raises(RuntimeError, match=r"code 1:\ncannot do \['speed', '--env=e'\]"):
    processes.sample(script, "speed", env="e")


def test_a_sample_is_the_last_line_and_xla_has_its_defaults(
  processes, script, monkeypatch
):
  monkeypatch.setenv("XLA_FLAGS", "--xla_anything")
  monkeypatch.setenv("JAX_PLATFORMS", "cuda")
  assert processes.sample(script, "speed") == [None, "cpu"]


def test_a_sample_on_whatever_device_there_is(processes, script, monkeypatch):
  monkeypatch.setenv("JAX_PLATFORMS", "cuda")
  assert processes.sample(script, "speed", platform=None) == [None, "cuda"]
  monkeypatch.delenv("JAX_PLATFORMS")
  assert processes.sample(script, "speed", platform=None) == [None, None]


def test_memory_of_this_process(processes):
  before = processes.status_mib("VmRSS")
  held = np.ones(32 * 2**20, np.uint8)
  now = processes.status_mib("VmRSS")
  assert 24 < now - before < 64 and held.all()
  assert processes.status_mib("VmHWM") >= now
  with pytest.raises(RuntimeError, match="has no VmNothing"):
    processes.status_mib("VmNothing")


def test_compilations_are_counted_once_each(processes):
  function = jax.jit(lambda x: x * 3.0 + 1.0)
  one, two = jnp.ones(3), jnp.ones(4)
  counter = processes.CompilationCounter()
  function(one)
  assert counter.count == 1
  function(one)
  assert counter.count == 1
  function(two)
  assert counter.count == 2
