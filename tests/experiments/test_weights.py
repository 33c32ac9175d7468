"""Weights in one file: as they were written, and files that are refused."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.experiments import weights


class Pair(NamedTuple):
  online: dict
  others: list


@pytest.fixture
def tree():
  layer = {"w": jnp.arange(6, dtype=jnp.float32).reshape(2, 3), "b": jnp.zeros(3)}
  half = jnp.asarray([1.5, -2.0], jnp.bfloat16)
  return Pair({"mlp/~/linear_0": layer}, [half, np.int32(7)])


@pytest.fixture
def saved(tree, tmp_path):
  path = tmp_path / "final.npz"
  with open(path, "wb") as file:
    weights.save(file, tree)
  return path


def test_weights_are_read_as_they_were_written(tree, saved):
  loaded = weights.load(saved, tree)
  assert jax.tree.structure(loaded) == jax.tree.structure(tree)
  for a, b in zip(jax.tree.leaves(loaded), jax.tree.leaves(tree), strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_weights_are_named_by_their_paths_and_need_no_pickle(saved):
  with np.load(saved, allow_pickle=False) as arrays:
    names = {name: arrays[name].dtype for name in arrays}
  assert names == {
    "online/mlp/~/linear_0/w": np.float32,
    "online/mlp/~/linear_0/b": np.float32,
    "others/0": np.float32,  # bfloat16 fits.
    "others/1": np.int32,
  }


def test_weights_of_another_agent_are_refused(tree, saved):
  wider = {"mlp/~/linear_0": {"w": jnp.zeros((2, 4)), "b": jnp.zeros(3)}}
  with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\)"):
    weights.load(saved, tree._replace(online=wider))
  with pytest.raises(ValueError, match="others/1"):
    weights.load(saved, tree._replace(others=tree.others[:1]))
  with pytest.raises(ValueError, match="others/2"):
    weights.load(saved, tree._replace(others=[*tree.others, jnp.zeros(1)]))


def test_a_file_without_weights_is_refused(tree, tmp_path):
  path = tmp_path / "notes.npz"
  path.write_text("nothing of the kind")
  with pytest.raises(ValueError, match=r"notes\.npz"):
    weights.load(path, tree)
