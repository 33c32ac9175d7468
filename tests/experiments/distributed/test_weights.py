"""Weights are stored once per version and read when they are new."""

import sys
import types
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.experiments.distributed import weights


@pytest.fixture
def store(monkeypatch):
  """A stand-in for Ray: what was put and how often each was read."""
  ray: Any = types.ModuleType("ray")
  ray.objects, ray.reads = [], []

  def put(value: Any) -> int:
    ray.objects.append(value)
    return len(ray.objects) - 1

  def get(reference: int) -> Any:
    ray.reads.append(reference)
    return ray.objects[reference]

  ray.put, ray.get = put, get
  monkeypatch.setitem(sys.modules, "ray", ray)
  return ray


def test_a_version_is_put_once_and_read_once_by_each(store):
  held = [weights.Held() for _ in range(3)]
  for number in (0, 5):
    version = weights.publish(number, {"w": jnp.full(2, number, jnp.float32)})
    for each in held:
      assert each.fetch(version) and not each.fetch(version)
      (fetched,) = each.get_variables(["params"])
      np.testing.assert_array_equal(fetched["w"], np.full(2, number, np.float32))
  assert len(store.objects) == 2 and store.reads == [0, 0, 0, 1, 1, 1]
  assert all(isinstance(each["w"], np.ndarray) for each in store.objects)


def test_there_are_no_other_variables():
  with pytest.raises(ValueError, match="'params'"):
    weights.Held().get_variables(["critic"])
