"""The LSTM, duelling heads, and action values of histories."""

import functools

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from explorax import networks

H, F, A, M, B, T = 3, 4, 3, 2, 2, 5
SPEC = dm_env.specs.Array((F,), np.float32)


def make(lstm_size=H, head_size=4, num_members=M, shared_torso=True, **of_trunk):
  torso = networks.make_torso("mlp", SPEC, (5,))
  kind = networks.DuellingHead if head_size else networks.PlainHead
  return networks.make_q_networks(
    networks.make_trunk(torso, A, lstm_size=lstm_size, **of_trunk),
    lambda: kind(A, head_size),
    SPEC,
    num_members=num_members,
    lstm_size=lstm_size,
    shared_torso=shared_torso,
  )


def make_inputs(seed=0, num_policies=1):
  rng = np.random.default_rng(seed)
  return networks.StepInputs(
    observation=rng.normal(size=(B, T, F)).astype(np.float32),
    previous_action=rng.integers(-1, A, (B, T)).astype(np.int32),
    previous_reward=rng.normal(size=(B, T)).astype(np.float32),
    previous_r_int=rng.normal(size=(B, T)).astype(np.float32),
    policy=rng.integers(0, num_policies, (B, T)).astype(np.int32),
  )


def make_state(nets, seed=1):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(B, nets.state_size)).astype(np.float32)


@pytest.mark.parametrize("steps", [1, T])
def test_lstm_is_a_plain_loop(random_params, steps):
  lstm = hk.without_apply_rng(hk.transform(lambda x, s: networks.LSTM(H)(x, s)))
  rng = np.random.default_rng(0)
  x = rng.normal(size=(B, steps, F)).astype(np.float32)
  state = rng.normal(size=(B, 2 * H)).astype(np.float32)
  params = random_params(lambda key: lstm.init(key, x, state))
  output, after = jax.jit(lstm.apply)(params, x, state)

  linear = {k: np.asarray(v, np.float64) for k, v in params["lstm/input"].items()}
  w_h = np.asarray(params["lstm"]["w_h"], np.float64)
  for b in range(B):
    h, c = np.split(state[b].astype(np.float64), 2)
    for t in range(steps):
      of_input = x[b, t] @ linear["w"] + linear["b"]
      h, c = oracles.lstm_step(of_input, w_h, h, c)
      np.testing.assert_allclose(output[b, t], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after[b], np.concatenate([h, c]), rtol=1e-4, atol=1e-5)


def test_unrolled_in_pieces_is_unrolled_at_once(random_params):
  nets = make()
  params, inputs, state = random_params(nets.init), make_inputs(), make_state(nets)
  unroll = jax.jit(nets.unroll)
  q, after = unroll(params, (), inputs, state)
  assert q.shape == (M, B, T, A) and after.shape == (B, nets.state_size)
  pieces, carried = [], state
  for t in range(T):
    piece = jax.tree.map(lambda x, t=t: x[:, t : t + 1], inputs)
    values, carried = unroll(params, (), piece, carried)
    pieces.append(values)
  np.testing.assert_allclose(np.concatenate(pieces, axis=2), q, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(carried, after, rtol=1e-4, atol=1e-5)


def test_whole_network_is_torso_memory_and_heads(random_params):
  """One stream, step by step, each member by itself."""
  nets = make(num_policies=3, sees_r_int=True, head_size=0)
  params, state = random_params(nets.init), make_state(nets)
  inputs = make_inputs(num_policies=3)
  q, _ = jax.jit(nets.unroll)(params, (), inputs, state)

  trunk = {
    k: {n: np.asarray(v, np.float64) for n, v in module.items()}
    for k, module in params.torso.items()
  }
  torso = trunk["perceptron_torso"]
  for b in range(B):
    h, c = np.split(state[b].astype(np.float64), 2)
    for t in range(T):
      features = np.maximum(inputs.observation[b, t] @ torso["w"] + torso["b"], 0)
      action = np.zeros(A)
      if inputs.previous_action[b, t] >= 0:
        action[inputs.previous_action[b, t]] = 1
      policy = np.eye(3)[inputs.policy[b, t]]
      rewards = [inputs.previous_reward[b, t], inputs.previous_r_int[b, t]]
      x = np.concatenate([features, action, rewards, policy])
      linear, w_h = trunk["lstm/input"], trunk["lstm"]["w_h"]
      h, c = oracles.lstm_step(x @ linear["w"] + linear["b"], w_h, h, c)
      for k in range(M):
        head = {n: np.asarray(v[k]) for n, v in params.heads["plain_head/q"].items()}
        np.testing.assert_allclose(
          q[k, b, t], h @ head["w"] + head["b"], rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize(
  ("changes", "seen"),
  [
    ({}, {"observation", "previous_action", "previous_reward"}),
    (
      {"sees_r_int": True, "num_policies": 2},
      {"observation", "previous_action", "previous_reward", "previous_r_int", "policy"},
    ),
    ({"lstm_size": 0, "num_policies": 2}, {"observation", "policy"}),
  ],
)
def test_what_a_network_sees(random_params, changes, seen):
  nets = make(**changes)
  params, inputs, state = random_params(nets.init), make_inputs(), make_state(nets)
  unroll = jax.jit(nets.unroll)
  q, _ = unroll(params, (), inputs, state)
  moved = {
    "observation": inputs.observation + 1,
    "previous_action": (inputs.previous_action + 2) % A,
    "previous_reward": inputs.previous_reward + 1,
    "previous_r_int": inputs.previous_r_int + 1,
    "policy": 1 - inputs.policy,
  }
  for name, value in moved.items():
    other, _ = unroll(params, (), inputs._replace(**{name: value}), state)
    assert (np.abs(other - q).max() > 1e-4) == (name in seen), name


def test_separate_trunks_are_networks_by_themselves(random_params):
  nets, one = make(shared_torso=False), make(num_members=1)
  assert nets.state_size == M * one.state_size
  params, inputs, state = random_params(nets.init), make_inputs(), make_state(nets)
  q, after = jax.jit(nets.unroll)(params, (), inputs, state)
  unroll = jax.jit(one.unroll)
  for k in range(M):
    own = type(params)(
      jax.tree.map(lambda x, k=k: x[k], params.torso),
      jax.tree.map(lambda x, k=k: x[k : k + 1], params.heads),
    )
    part = slice(2 * H * k, 2 * H * (k + 1))
    expected, expected_after = unroll(own, (), inputs, state[:, part])
    np.testing.assert_allclose(q[k], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after[:, part], expected_after, rtol=1e-4, atol=1e-5)


def test_priors_add_their_values_and_keep_a_state_of_their_own(random_params):
  plain, prior = make(), make(lstm_size=2, head_size=0)
  nets = networks.with_prior(plain, 1.5, prior)
  assert nets.state_size == plain.state_size + prior.state_size == 2 * H + 4
  params = random_params(nets.init, seed=0)
  prior_params = random_params(nets.init_prior, seed=1)
  inputs, state = make_inputs(), make_state(nets)

  @jax.jit
  @functools.partial(jax.grad, argnums=(0, 1), has_aux=True)
  def unroll(params, prior_params):
    q, after = nets.unroll(params, prior_params, inputs, state)
    alone = plain.unroll(params, (), inputs, state[:, : 2 * H])
    other = prior.unroll(prior_params, (), inputs, state[:, 2 * H :])
    return jnp.sum(q**2), ((q, after), alone, other)

  gradients, outputs = jax.device_get(unroll(params, prior_params))
  assert all(np.any(leaf) for leaf in jax.tree.leaves(gradients[0]))
  assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradients[1]))
  (q, after), (trained, q_after), (fixed, fixed_after) = outputs
  np.testing.assert_allclose(q, trained + 1.5 * fixed, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    after, np.concatenate([q_after, fixed_after], axis=1), rtol=1e-5, atol=1e-6
  )


def test_a_prior_of_scale_zero_is_none():
  plain = make(lstm_size=0)
  assert networks.with_prior(plain, 0.0, plain) is plain


def test_side_by_side_is_each_by_itself(random_params):
  """With a state and, for noise, a key of its own."""
  torso = networks.make_torso("mlp", SPEC, (5,), noise=networks.Noise(0.5))
  noisy = networks.make_q_networks(
    networks.make_trunk(torso, A, lstm_size=2),
    lambda: networks.PlainHead(A, 0),
    SPEC,
    num_members=3,
    lstm_size=2,
  )
  parts, inputs = (make(), noisy), make_inputs()
  both = networks.side_by_side(*parts)
  params, prior = random_params(both.init), random_params(both.init_prior)
  state = make_state(both)
  states = np.split(state, [2 * H], axis=1)

  @jax.jit
  def unroll(params, key):
    keys = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    alone = [
      part.unroll(*arguments)
      for part, *arguments in zip(
        parts, params, prior, [inputs] * 2, states, keys, strict=True
      )
    ]
    mean, _ = both.unroll(params, prior, inputs, state)
    return both.unroll(params, prior, inputs, state, key), alone, mean

  (outputs, new), alone, mean = jax.device_get(unroll(params, jax.random.key(1)))
  for found, axis, *expected in zip((outputs, new), (0, 1), *alone, strict=True):
    np.testing.assert_allclose(found, np.concatenate(expected, axis), rtol=1e-5)
  np.testing.assert_allclose(mean[:M], outputs[:M], rtol=1e-5)
  assert outputs.shape == (M + 3, B, T, A) and not np.allclose(mean[M:], outputs[M:])
