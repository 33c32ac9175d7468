"""Packing and unpacking returns the same rows."""

import numpy as np
import pytest

from explorax.agents.replay import packing

pytestmark = pytest.mark.ops

COLUMNS = {
  "observation": ((2, 3), np.dtype(np.uint8)),
  "action": ((), np.dtype(np.int32)),
  "reward": ((), np.dtype(np.float32)),
  "state": ((4,), np.dtype(np.float32)),
  "empty": ((0,), np.dtype(np.float32)),
}


def make_row(rng: np.random.Generator) -> dict[str, np.ndarray]:
  return {
    "observation": rng.integers(0, 256, (2, 3)).astype(np.uint8),
    "action": np.asarray(rng.integers(-(2**31), 2**31), np.int32),
    "reward": np.asarray(rng.normal(), np.float32),
    "state": rng.normal(size=4).astype(np.float32),
    "empty": np.zeros(0, np.float32),
  }


@pytest.mark.parametrize("batch_shape", [(), (5,), (2, 3)])
def test_round_trip(batch_shape):
  rng = np.random.default_rng(0)
  packer = packing.RecordPacker(COLUMNS)
  rows = [make_row(rng) for _ in range(int(np.prod(batch_shape)))]
  records = np.stack([packer.pack(row) for row in rows])
  assert records.dtype == np.uint8 and records.shape[1:] == (packer.num_bytes,)
  unpacked = packer.unpack(records.reshape(*batch_shape, packer.num_bytes))
  assert list(unpacked) == list(COLUMNS)
  for name, (shape, dtype) in COLUMNS.items():
    expected = np.stack([row[name] for row in rows]).reshape((*batch_shape, *shape))
    np.testing.assert_array_equal(unpacked[name], expected)
    assert unpacked[name].dtype == dtype
    assert unpacked[name].flags.c_contiguous
