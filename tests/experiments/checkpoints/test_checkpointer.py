"""Checkpoints: what is restored, which are refused, kept and due."""

import hashlib
import json
import pickle
import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.experiments import errors
from explorax.experiments.checkpoints import checkpointer, files

pytestmark = pytest.mark.newest


class State(NamedTuple):
  params: dict
  key: np.ndarray
  nothing: tuple = ()


def state(value: float) -> State:
  params = {
    "mlp/~/linear_0": {"w": jnp.full((3, 2), value), "b": jnp.zeros((0, 2))},
    "half": jnp.asarray([1.5, value], jnp.bfloat16),
  }
  key = np.array([2**32 - 1, int(value)], np.uint32)
  return State(params, pickle.loads(pickle.dumps(key)))  # As from another process.


def snapshot(value: float) -> checkpointer.Snapshot:
  groups = {"state": state(value), "replay": {"sum": np.array([0.1, np.nan])}}
  return checkpointer.Snapshot(groups, {"episodes": int(value)})


@pytest.fixture
def make(tmp_path):
  """Makes checkpointers of one directory; `messages` are theirs."""
  messages: list[str] = []
  path = tmp_path / "checkpoints"

  def make(**changes) -> checkpointer.Checkpointer:
    return checkpointer.Checkpointer(
      path, with_replay=True, warn=messages.append, **changes
    )

  make.messages = messages
  make.path = path
  return make


def names(make) -> list[str]:
  return sorted(path.name for path in make.path.iterdir())


def test_arrays_come_back_to_the_bit(make):
  assert make().restored is None
  first = make()
  first.recorder_state = lambda: {"rows": 3}
  assert first.save(70, snapshot(7.0))
  found = make().restored
  assert found.record["env_steps"] == 70
  assert found.record["counts"] == {"episodes": 7}
  assert found.record["recorder"] == {"rows": 3}
  restored = found.restore("state", state(0.0))
  assert isinstance(restored, State)
  old_leaves = jax.tree.leaves(state(7.0))
  for new, old in zip(jax.tree.leaves(restored), old_leaves, strict=True):
    assert new.dtype == old.dtype and new.shape == old.shape
    assert new.tobytes() == np.asarray(old).tobytes()
  np.testing.assert_array_equal(restored.key, state(7.0).key)
  replay = found.restore("replay", {"sum": np.zeros(2)})
  assert replay["sum"].tobytes() == np.array([0.1, np.nan]).tobytes()


@pytest.mark.parametrize(
  ("like", "words"),
  [
    ({"sum": np.zeros(3)}, "shape"),
    ({"sum": np.zeros(2, np.float32)}, "float32"),
    ({"total": np.zeros(2)}, "'sum' is only in"),
  ],
)
def test_other_arrays_are_refused(make, like, words):
  make().save(1, snapshot(1.0))
  with pytest.raises(errors.OutputError, match="another version") as refusal:
    make().restored.restore("replay", like)
  assert words in str(refusal.value)


def _flip(path):
  file = path / "state.npz"
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
  """A directory with two checkpoints."""
  path = tmp_path_factory.mktemp("two") / "checkpoints"
  own = checkpointer.Checkpointer(path, with_replay=True)
  assert own.save(10, snapshot(1.0)) and own.save(20, snapshot(2.0))
  return path


@pytest.mark.parametrize(
  ("damage", "names"),
  [
    (_flip, "state"),
    (lambda path: (path / "manifest.json").unlink(), "manifest.json"),
    (lambda path: (path / "manifest.json").write_text("{"), "step_000000000020"),
    (lambda path: (path / "record.json").unlink(), "record.json"),
    (lambda path: (path / "state.npz").unlink(), "state.npz"),
    (lambda path: (path / "more").touch(), "more"),
  ],
)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_used(
  two, make, damage, names
):
  shutil.copytree(two, make.path)
  damage(make.path / "step_000000000020")
  assert make().restored.record["env_steps"] == 10
  (message,) = make.messages
  assert names in message and "refused_step_000000000020" in message
  # There is no second message.
  assert make().restored.record["env_steps"] == 10 and len(make.messages) == 1


def test_without_a_good_checkpoint_the_run_cannot_resume(make):
  make().save(10, snapshot(1.0))
  _flip(make.path / "step_000000000010")
  for _ in range(2):  # The second call does not restart either.
    with pytest.raises(errors.OutputError, match=str(make.path)):
      make()


def test_a_pickle_among_the_files_is_never_loaded(make):
  """Even if its checksum is right."""
  make().save(10, snapshot(1.0))
  path = make.path / "step_000000000010"
  bomb = b"cos\nsystem\n(S'touch bomb'\ntR."
  (path / "state.npz").write_bytes(bomb)
  manifest = json.loads((path / "manifest.json").read_text())
  for name in manifest["files"]:
    content = (path / name).read_bytes()
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
  (path / "manifest.json").write_text(json.dumps(manifest))
  with pytest.raises(files.DamagedCheckpointError, match="state"):
    make().restored.arrays("state")


def test_a_full_disk_keeps_the_previous_checkpoint(make, small_disk):
  own = make()
  own.save(10, snapshot(1.0))
  before = {p: p.read_bytes() for p in make.path.rglob("*") if p.is_file()}
  big = {"state": np.random.default_rng(0).random(20_000)}
  with small_disk(20_000):
    assert not own.save(20, checkpointer.Snapshot(big, {}))
  assert "disk is full" in make.messages[-1]
  assert before == {p: p.read_bytes() for p in make.path.rglob("*") if p.is_file()}
  assert own.save(30, checkpointer.Snapshot(big, {}))  # When there is room again.
  assert make().restored.record["env_steps"] == 30


def test_the_newest_are_kept(make):
  now = [0.0]
  own = make(keep=2, clock=lambda: now[0])
  for i in range(4):
    now[0] = i * 1200.0
    assert own.save(10 * i, checkpointer.Snapshot({}, {}))
  assert names(make) == ["step_000000000020", "step_000000000030"]
  again = make(keep=1, clock=lambda: now[0])
  now[0] += 600.0
  assert again.seconds == 3 * 1200.0 + 600.0
  again.save(30, checkpointer.Snapshot({}, {}))  # At the same step: another name.
  assert names(make) == ["step_000000000030_1"]


def test_when_a_checkpoint_is_due(make):
  now = [1000.0]
  own = make(every=100, minutes=10, clock=lambda: now[0])
  assert not own.is_due(99) and own.is_due(100) and own.is_due(250)
  own.save(250, checkpointer.Snapshot({}, {}))
  assert not own.is_due(299) and own.is_due(300)
  now[0] += 600.0
  assert own.is_due(251)
  assert not make(clock=lambda: now[0]).is_due(10**9)
