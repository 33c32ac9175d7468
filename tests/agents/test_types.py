"""Invalid ReplaySpecs are refused; bonuses are aligned with transitions."""

import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import scaling

pytestmark = pytest.mark.ops

USUAL = {"capacity": 100, "min_size": 1, "batch_size": 4, "updates_per_step": 1.0}


@pytest.mark.parametrize(
  "changes, message",
  [
    ({"length": 4, "period": 5}, "period is 5, beyond its length of 4"),
    ({"capacity": 3}, "a replay capacity of 3 environment steps"),
    ({"capacity": 7, "length": 2, "period": 2}, "raise the capacity to at least 8"),
    ({"min_size": 101}, "min_size is 101"),
  ],
)
def test_refuses(changes, message):
  with pytest.raises(ValueError) as caught:
    types.ReplaySpec(**{**USUAL, **changes})
  assert message in str(caught.value)


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_align_intrinsic(shape):
  r_int = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
  for end, offset in (("source", 0), ("transition", 0), ("destination", 1)):
    aligned = np.asarray(scaling.align(r_int, end))
    np.testing.assert_array_equal(aligned, r_int[offset : offset + 3])
