"""Checkpoints: what is restored, which are refused, kept and due."""

import pickle
import resource
import shutil
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.experiments import checkpoint, errors


class State(NamedTuple):
  params: dict
  key: np.ndarray
  typed: jax.Array
  nothing: tuple = ()


def state(value: float) -> State:
  params = {"mlp/~/linear_0": {"w": jnp.full((3, 2), value), "b": jnp.zeros((0, 2))}}
  key = np.array([2**32 - 1, int(value)], np.uint32)
  key = pickle.loads(pickle.dumps(key))  # As from another process.
  return State(params, key, jax.random.key(int(value)))


def snapshot(value: float) -> checkpoint.Snapshot:
  groups = {"state": state(value), "replay": {"sum": np.array([0.1, np.nan])}}
  return checkpoint.Snapshot(groups, {"episodes": int(value)})


EMPTY = checkpoint.Snapshot({}, {})


@pytest.fixture
def make(tmp_path):
  """Makes checkpointers of one directory."""
  path = tmp_path / "checkpoints"

  def make(**changes) -> checkpoint.Checkpointer:
    restored = checkpoint.recover(path)
    return checkpoint.Checkpointer(path, restored, with_replay=True, **changes)

  make.path = path
  return make


def contents(make) -> dict:
  return {path: path.read_bytes() for path in make.path.rglob("*") if path.is_file()}


def test_arrays_come_back_to_the_bit(make):
  assert make().restored is None
  make().save(70, snapshot(7.0))
  found = make().restored
  assert found.record["env_steps"] == 70
  assert found.record["counts"] == {"episodes": 7}
  restored = found.restore("state", state(0.0))
  assert jax.tree.structure(restored) == jax.tree.structure(state(7.0))
  assert jax.random.key_data(restored.typed).tolist() == [0, 7]
  old, new = state(7.0)._replace(typed=()), restored._replace(typed=())
  for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert a.tobytes() == np.asarray(b).tobytes()
  replay = found.restore("replay", {"sum": np.zeros(2)})
  assert replay["sum"].tobytes() == np.array([0.1, np.nan]).tobytes()
  padded = found.restore("replay", {"sum": np.zeros(4)}, pad=True)
  assert padded["sum"][2:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
  ("like", "words"),
  [({"sum": np.zeros(3)}, "shape"), ({"total": np.zeros(2)}, "'sum' is only in")],
)
def test_other_arrays_are_refused(make, like, words):
  make().save(1, snapshot(1.0))
  with pytest.raises(errors.OutputError, match="another version") as refusal:
    make().restored.restore("replay", like)
  assert words in str(refusal.value)


def _flip(file):
  content = bytearray(file.read_bytes())
  content[content.index(b"env_steps")] ^= 1
  file.write_bytes(content)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
  """A directory with two checkpoints."""
  path = tmp_path_factory.mktemp("two") / "checkpoints"
  own = checkpoint.Checkpointer(path, with_replay=True)
  own.save(10, snapshot(1.0))
  own.save(20, snapshot(2.0))
  return path


BOMB = b"cos\nsystem\n(S'touch bomb'\ntR."  # A pickle, which must not be loaded.


@pytest.mark.parametrize(
  "damage",
  [
    _flip,
    lambda file: file.unlink(),
    lambda file: file.write_bytes(file.read_bytes()[:-100]),
    lambda file: file.write_bytes(BOMB),
  ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
  two, make, damage, capsys
):
  shutil.copytree(two, make.path)
  damage(make.path / "step_000000000020/state.npz")
  for _ in range(2):  # There is no second message.
    assert make().restored.record["env_steps"] == 10
  (message,) = capsys.readouterr().err.splitlines()
  assert "step_000000000020" in message and "damaged_step" in message


def test_without_a_good_checkpoint_the_run_cannot_resume(two, make):
  shutil.copytree(two, make.path)
  for file in make.path.rglob("state.npz"):
    _flip(file)
  before = contents(make)
  with pytest.raises(errors.OutputError, match=str(make.path)):
    make()
  assert contents(make) == before


def test_a_full_disk_keeps_the_previous_checkpoint(make):
  own = make()
  own.save(10, snapshot(1.0))
  before = contents(make)
  big = {"state": {"x": np.random.default_rng(0).random(20_000)}}
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
  try:
    with pytest.raises(errors.OutputError, match="not be written"):
      own.save(20, checkpoint.Snapshot(big, {}))
  finally:  # The limit holds for pytest's own output as well.
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert contents(make) == before
  own.save(30, checkpoint.Snapshot(big, {}))  # When there is room again.
  assert make().restored.record["env_steps"] == 30


def test_two_are_kept(make):
  for i in range(4):
    make().save(10 * i, EMPTY)
  make().save(30, EMPTY)  # At the same step: another name.
  names = sorted(path.name for path in make.path.iterdir())
  assert names == ["step_000000000030", "step_000000000030_1"]


def test_when_a_checkpoint_is_due(make, monkeypatch):
  now = [1000.0]
  monkeypatch.setattr(time, "monotonic", lambda: now[0])
  own = make(every=100, minutes=10)
  assert not own.is_due(99) and own.is_due(100) and own.is_due(250)
  own.save(250, EMPTY)
  assert not own.is_due(299) and own.is_due(300)
  now[0] += 600.0
  assert own.is_due(251)
  assert not make().is_due(10**9)
