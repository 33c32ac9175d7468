"""Oracle controllable states, and the probe that looks for them in learnt ones."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu, ngu_probe, ngu_states
from explorax.agents.q import agent as q_agent
from explorax.environments import specs
from explorax.experiments.presets import r2d2 as r2d2_presets


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


def test_the_entries_are_found_by_their_names():
  names = ("keys", "lives", "room", "y", "x")
  spec = specs.ImageWithState((6, 5, 1), names)
  (picture,) = pictures(spec, [(4, 9, 2, 235, 77)])
  np.testing.assert_array_equal(
    ngu_states.make_oracle(spec)(picture), [77, 235, 64, 128]
  )


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


def test_nothing_is_trained_for_oracle_states_but_rnd(make_bonus, oracle_spec):
  bonus = make_bonus(oracle_spec, states="oracle")
  start = bonus.training.init(jax.random.PRNGKey(0))
  observation = np.stack([pictures(oracle_spec, STATES)] * 2)
  state, metrics = jax.jit(bonus.training.update)(
    start, observation, np.zeros((2, 9), np.int32), np.array([9, 8], np.int32)
  )
  assert set(metrics) == {"rnd_loss"} and start.embedding == state.embedding == ()


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


def test_an_agent_remembers_the_oracle_state_and_sees_the_picture(oracle_spec):
  config = dataclasses.replace(
    r2d2_presets.ATARI,
    hidden_sizes=(2,),
    lstm_size=2,
    head_size=2,
    bonus=ngu.NeverGiveUp(states="oracle", rnd=False, memory_capacity=3),
    beta=0.3,
  )
  actions = dm_env.specs.DiscreteArray(3)
  agent = q_agent.make_agent(config, specs.EnvironmentSpec(oracle_spec, actions))
  assert agent.encoding.spec == oracle_spec
  core = agent.actor()
  rng = np.random.default_rng(0)
  weights = jax.tree.map(
    lambda x: rng.normal(size=x.shape).astype(x.dtype),
    jax.eval_shape(
      lambda key: agent.learner.params(agent.learner.init(key)), jax.random.PRNGKey(0)
    ),
  )
  step = jax.jit(core.select_action)
  states = []
  for row in (STATES[0], STATES[7]):
    (picture,) = pictures(oracle_spec, [row])
    _, state = step(
      types.ActorParams(weights, np.int32(0)),
      dm_env.TimeStep(
        np.int32(0), np.float32(0), np.float32(1), agent.encoding(picture)
      ),
      core.init(jax.random.PRNGKey(1), 0, 1),
    )
    remembered = state.bonus_state.memory.embeddings[0]
    np.testing.assert_array_equal(remembered, row * np.array([1, 1, 32, 32]))
    states.append(np.asarray(state.previous.core_state))
  np.testing.assert_array_equal(*states)
  assert np.any(states[0])


@pytest.mark.parametrize(
  "spec",
  [
    dm_env.specs.Array((84, 84, 1), np.uint8),
    dm_env.specs.Array((3,), np.float32),
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


def test_an_untrained_probe_guesses():
  mask, state = np.ones(4, np.float32), np.full((4, 3), 7, np.uint8)
  _, metrics = ngu_probe.loss(ngu_probe.init(2), jnp.ones((4, 2)), state, mask)
  np.testing.assert_allclose(metrics["probe_loss_x"], np.log(256), rtol=1e-6)
  assert metrics["probe_accuracy_room"] == 0.0


@pytest.fixture(scope="module")
def walked(oracle_spec):
  """Windows in which the picture shows the room, and the place is anywhere."""
  rng = np.random.default_rng(0)
  rooms = rng.integers(0, 3, (8, 6))
  state = rng.integers(0, 256, (8, 6, 4))
  state[..., 2] = 10 + rooms
  image = np.zeros((8, 6, *oracle_spec.image_spec.shape), np.uint8)
  for index in np.ndindex(8, 6):
    image[index][rooms[index]] = 255
  observation = np.stack(
    [
      np.stack([oracle_spec.join(*pair) for pair in zip(*rows, strict=True)])
      for rows in zip(image, state, strict=True)
    ]
  )
  action = rng.integers(0, 3, (8, 6)).astype(np.int32)
  return observation, action, np.full(8, 6, np.int32)


def test_the_probe_is_trained_and_leaves_f_alone(make_bonus, oracle_spec, walked):
  plain = make_bonus(oracle_spec, rnd=False)
  probing = make_bonus(oracle_spec, rnd=False, probe=True, probe_learning_rate=0.1)
  updates = [jax.jit(bonus.training.update) for bonus in (plain, probing)]
  states = [bonus.training.init(jax.random.PRNGKey(0)) for bonus in (plain, probing)]
  assert states[0].probe == ()
  history = []
  for _ in range(60):
    states[0], _ = updates[0](states[0], *walked)
    states[1], metrics = updates[1](states[1], *walked)
    history.append(metrics)
  f, f_probed = (jax.tree.leaves(state.embedding) for state in states)
  for a, b in zip(f, f_probed, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
  assert history[0]["probe_accuracy_room"] == 0.0
  assert history[-1]["probe_accuracy_room"] == 1.0
  assert history[-1]["probe_loss_room"] < 0.1 * history[0]["probe_loss_room"]
  # Of what is not in the picture, nothing can be read.
  assert history[-1]["probe_accuracy_x"] < 0.5
