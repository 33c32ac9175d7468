"""bsuite's environments, saved between two episodes and resumed in new ones."""

import json

import fakes
import jax
import numpy as np
import pytest
from bsuite import sweep

from explorax import environments
from explorax.environments import (
  bsuite_environments,
  bsuite_sweeps,
  chain,
  saving,
)


def _play(environment, rng, num_episodes):
  """All that is seen of episodes at random."""
  seen = []
  num_actions = environment.action_spec().num_values
  for _ in range(num_episodes):
    timestep = environment.reset()
    seen.append(np.asarray(timestep.observation).tolist())
    while not timestep.last():
      timestep = environment.step(rng.integers(num_actions))
      seen.append((timestep.reward, np.asarray(timestep.observation).tolist()))
  return seen


@pytest.mark.parametrize(
  "bsuite_id", [i for i in sweep.TESTING if not bsuite_sweeps.needs_mnist(i)]
)
def test_bsuites_environments_resume_bit_for_bit_between_episodes(bsuite_id, tmp_path):
  records = [tmp_path / name for name in ("whole", "after")]
  whole = bsuite_environments.load(bsuite_id, seed=3, record_to=str(records[0]))
  rng = np.random.default_rng(0)
  _play(whole, rng, 4)
  arrays, counts = saving.save(whole)
  counts = json.loads(json.dumps(counts))

  after = bsuite_environments.load(bsuite_id, seed=4, record_to=str(records[1]))
  saving.restore(after, arrays, counts)
  again = np.random.default_rng()
  again.bit_generator.state = rng.bit_generator.state
  assert _play(after, again, 5) == _play(whole, rng, 5)
  rows, rows_after = (next(path.iterdir()).read_text() for path in records)
  assert rows_after == rows and rows.count("\n") == 1 + 9
  assert after.raw.bsuite_info() == whole.raw.bsuite_info()


def test_what_no_checkpoint_can_contain_is_refused_at_the_start():
  class Keeping(fakes.FakeEnvironment):
    KEPT = ("seen",)
    seen: object = 1

    def __init__(self, seen):
      super().__init__()
      self.seen = seen

  saving.check(environments.wrap(Keeping({"a": [1, "b"]}), seed=0))
  with pytest.raises(TypeError, match="'seen'"):
    saving.check(environments.wrap(Keeping({1, 2}), seed=0))

  class Typed(chain.Chain):
    def reset(self, key, params):
      state, timestep = super().reset(key, params)
      return (state, jax.random.key(0)), timestep

  saving.check(environments.wrap(chain.Chain(5), seed=0))
  with pytest.raises(TypeError, match="key_data"):
    saving.check(environments.wrap(Typed(5), seed=0))
