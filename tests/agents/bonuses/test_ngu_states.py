"""Oracle controllable states, and the probe that looks for them in learnt ones."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import ngu_probe, ngu_states
from explorax.environments import specs


def observe_all(bonus, weights, observations):
  observe = jax.jit(bonus.observe)
  state, rewards = bonus.begin_episode(bonus.init()), []
  for x in observations:
    reward, state = observe(weights, state, x, jnp.int32(0), jnp.bool_(False))
    rewards.append(float(reward))
  return rewards, state


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


def test_rewards_of_oracle_states(make_bonus, oracle_spec):
  """Those of the episodic memory, whatever the picture shows."""
  bonus = make_bonus(oracle_spec, states="oracle", rnd=False, num_neighbors=1)
  weights = bonus.training.weights(bonus.training.init(jax.random.PRNGKey(0)))
  assert weights == ((), (), ())
  rewards, state = observe_all(bonus, weights, pictures(oracle_spec, STATES))
  again, _ = observe_all(bonus, weights, pictures(oracle_spec, STATES, seed=1))
  assert rewards == again
  memory, expected = exploration.init_episodic_memory(50, 4), []
  for row in STATES:
    x = jnp.array(row * [1, 1, 32, 32], jnp.float32)
    reward, memory = exploration.episodic_novelty(memory, x, num_neighbors=1)
    expected.append(float(reward))
  np.testing.assert_allclose(rewards, expected, rtol=1e-5)
  np.testing.assert_allclose(state.memory.embeddings, memory.embeddings)
  # A repetition pays least; a new room, and a new key in it, hundreds of times that.
  assert rewards[2] == min(rewards[1:])
  assert min(rewards[5], rewards[6]) > 100 * rewards[2]


def test_neither_f_nor_rnd_sees_the_row_of_state(make_bonus, oracle_spec):
  bonus = make_bonus(oracle_spec)
  weights = bonus.training.weights(bonus.training.init(jax.random.PRNGKey(0)))
  one = pictures(oracle_spec, STATES)
  other = pictures(oracle_spec, STATES[::-1])
  np.testing.assert_array_equal(np.stack(one)[:, :-1], np.stack(other)[:, :-1])
  assert np.any(np.stack(one) != np.stack(other))
  rewards, state = observe_all(bonus, weights, one)
  others, other_state = observe_all(bonus, weights, other)
  assert rewards == others and state.moments == other_state.moments


@pytest.mark.parametrize(
  "spec",
  [
    dm_env.specs.Array((84, 84, 1), np.uint8),
    specs.ImageWithState((6, 5, 1), ("x", "y")),
  ],
)
@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"states": "oracle"}, "states is 'oracle', which reads x, y, room, keys from"),
    ({"probe": True}, "probe is True, which reads x, y, room from a row below"),
  ],
)
def test_missing_oracle_states_are_refused(make_bonus, spec, changes, message):
  with pytest.raises(ValueError, match=message) as caught:
    make_bonus(spec, **changes)
  assert "atari:MontezumaRevenge/ngu,oracle=true" in str(caught.value)
  assert "\n" not in str(caught.value)


def test_the_probe_is_a_linear_classifier():
  rng = np.random.default_rng(0)
  params = {
    name: rng.normal(size=x.shape).astype(np.float32)
    for name, x in ngu_probe.init(3).items()
  }
  embedding = rng.normal(size=(6, 3)).astype(np.float32)
  state = rng.integers(0, 256, (6, 3), dtype=np.uint8)
  mask = np.array([1, 1, 0, 1, 1, 1], np.float32)
  for i in range(3):  # A frame of which all is found.
    state[1, i] = np.argmax(embedding[1] @ params["w"][i] + params["b"][i])
  value, metrics = jax.jit(ngu_probe.loss)(params, embedding, state, mask)
  total = 0.0
  for i, name in enumerate(("x", "y", "room")):
    losses, hits, gaps = [], [], []
    for n in np.flatnonzero(mask):
      logits = np.float64(embedding[n]) @ params["w"][i] + params["b"][i]
      truth = int(state[n, i])
      losses.append(np.log(np.sum(np.exp(logits))) - logits[truth])
      hits.append(np.argmax(logits) == truth)
      gaps.append((np.argmax(logits) - truth) ** 2)
    total += np.mean(losses)
    np.testing.assert_allclose(metrics[f"probe_loss_{name}"], np.mean(losses), 1e-5)
    np.testing.assert_allclose(metrics[f"probe_accuracy_{name}"], np.mean(hits), 1e-6)
    assert 0 < np.mean(hits) < 1
    if name == "room":
      assert "probe_error_room" not in metrics
    else:
      expected = np.sqrt(np.mean(gaps))
      np.testing.assert_allclose(metrics[f"probe_error_{name}"], expected, 1e-5)
  np.testing.assert_allclose(value, total, rtol=1e-5)
  gradient = jax.grad(lambda x: ngu_probe.loss(params, x, state, mask)[0])(embedding)
  np.testing.assert_array_equal(gradient, np.zeros_like(embedding))
