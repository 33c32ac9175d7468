"""Invalid ReplaySpecs are refused."""

import pytest

from explorax.agents import types

pytestmark = pytest.mark.core

USUAL = {"capacity": 100, "min_size": 1, "batch_size": 4, "updates_per_step": 1.0}


@pytest.mark.parametrize(
  "changes, message",
  [
    ({"length": 4, "period": 5}, "period is 5, beyond the length of 4"),
    ({"capacity": 3}, "replay_capacity is 3 environment steps"),
    ({"capacity": 7, "length": 2, "period": 2}, "raise it to at least 8"),
    ({"min_size": 101}, "min_replay_size is 101"),
  ],
)
def test_refuses(changes, message):
  with pytest.raises(ValueError) as caught:
    types.ReplaySpec(**{**USUAL, **changes})
  assert message in str(caught.value)
