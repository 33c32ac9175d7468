"""Oracle controllable states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import ngu_states
from explorax.environments import specs


def pictures(spec, states, seed=0):
  rng = np.random.default_rng(seed)
  image = rng.integers(0, 256, (len(states), *spec.image_spec.shape), dtype=np.uint8)
  return [spec.join(x, state) for x, state in zip(image, states, strict=True)]


STATES = np.array(
  [
    (77, 235, 1, 0),
    (78, 235, 1, 0),
    (77, 235, 1, 0),
    (77, 236, 1, 0),
    (120, 235, 1, 0),
    (77, 235, 2, 0),
    (77, 235, 2, 1),
    (255, 0, 255, 4),
    (78, 235, 1, 0),
  ]
)


def test_oracle_states_are_place_room_and_keys(oracle_spec):
  oracle = ngu_states.make_oracle(oracle_spec)
  states = oracle(jnp.asarray(np.stack(pictures(oracle_spec, STATES))))
  assert states.dtype == np.float32
  np.testing.assert_array_equal(states, STATES * np.array([1, 1, 32, 32]))


def test_neither_f_nor_rnd_sees_the_row_of_state(make_bonus, play, oracle_spec):
  bonus = make_bonus(oracle_spec)
  state = jax.jit(bonus.training.init)(jax.random.PRNGKey(0))
  weights = bonus.training.weights(state)
  one = pictures(oracle_spec, STATES)
  other = pictures(oracle_spec, STATES[::-1])
  np.testing.assert_array_equal(np.stack(one)[:, :-1], np.stack(other)[:, :-1])
  assert np.any(np.stack(one) != np.stack(other))
  rewards, state = play(bonus, [one], weights)
  others, other_state = play(bonus, [other], weights)
  assert rewards == others and state.moments == other_state.moments


def test_missing_oracle_states_are_refused(make_bonus):
  spec = specs.ImageWithState((6, 5, 1), ("x", "y"))
  with pytest.raises(ValueError, match="reads x, y, room, keys from"):
    make_bonus(spec, states="oracle")
