"""Bonuses of two halves: what acting stores, and what the learner makes of it."""

import dataclasses
import functools
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import (
  counts,
  disagreement,
  dynamics,
  e3b,
  icm,
  ngu,
  novel_d,
  re3,
  ride,
  rnd,
  sim_hash,
)
from explorax.agents.bonuses import types as bonus_types
from explorax.environments import encodings, specs

A, D = 3, 2
SPEC = dm_env.specs.Array((D,), np.float32)
INDEX = encodings.make(specs.OneHotArray((2, 3))).spec
KEY = jax.random.PRNGKey(0)
RND = rnd.RND(hidden_sizes=(), output_size=3, normalisation="none", end="destination")


def small(bonus: Any, **changes: Any) -> Any:
  model = dataclasses.replace(bonus.model, embedding_size=4, hidden_size=5, **changes)
  return dataclasses.replace(bonus, model=model)


BONUSES = {
  "icm": small(icm.ICM()),
  "ride": small(ride.RIDE()),
  "novel_d": novel_d.NovelD(hidden_sizes=(), output_size=3),
  "e3b": small(e3b.E3B()),
  "e3b_rnd": dataclasses.replace(small(e3b.E3B()), lifelong=RND),
  "disagreement": disagreement.Disagreement(embedding_size=4, hidden_size=5),
  "re3": re3.RE3(embedding_size=4, memory_capacity=20),
  "sim_hash": sim_hash.SimHash(num_bits=16, num_buckets=1 << 12),
}


def layers(params: Any) -> list[np.ndarray]:
  """(w, b) of each layer in order, float64."""
  named = sorted(params.items())
  return [np.array(layer[x], np.float64) for _, layer in named for x in ("w", "b")]


def perceptron(x: np.ndarray, w_0, b_0, w_1, b_1) -> np.ndarray:
  return np.maximum(x @ w_0 + b_0, 0.0) @ w_1 + b_1


def make_inputs(source, action, destination, stored=None, mask=None):
  number = len(action)
  none = np.zeros((0, number, A), np.float32)
  column = lambda x: jnp.asarray(np.ones(number) if x is None else x, jnp.float32)  # noqa: E731
  source, destination = jnp.asarray(source), jnp.asarray(destination)
  return bonus_types.Inputs(
    td=none[..., 0],
    a_tm1=jnp.asarray(action, jnp.int32),
    q_tm1=none,
    q_t=none,
    observation_tm1=source,
    observation_t=destination,
    stored=column(stored),
    mask=column(mask),
    num_later=column(None),
    q=none,
    observation=source,
  )


@functools.cache
def built(name: str) -> bonus_types.IntrinsicReward:
  return BONUSES[name].build(SPEC, A)


@functools.cache
def compute(name: str):
  """(state, inputs) → (r_int, state), at the bonus's end."""
  bonus = built(name)
  return jax.jit(lambda s, x: bonus.learning.compute(s, x.at(bonus.end)))


@functools.cache
def initial(name: str) -> bonus_types.LearnerState:
  return jax.jit(lambda: built(name).init(KEY))()


def weights_of(name: str) -> Any:
  return built(name).acting.training.weights(initial(name).training)


# While acting.


@pytest.mark.parametrize("spec", [SPEC, INDEX])
def test_visits_are_of_the_episode_and_of_every_observation(play, spec):
  """RIDE stores 1 / √N, NovelD whether N is 1."""
  rng = np.random.default_rng(0)
  places = [rng.integers(-1, 6, size=rng.integers(1, 12)) for _ in range(5)]
  episodes = [
    [np.int32(s) if spec is INDEX else np.full(D, s, np.float32) for s in episode]
    for episode in places
  ]
  visits = [[np.sum(x[: t + 1] == s) for t, s in enumerate(x)] for x in places]
  roots, firsts = (
    play(BONUSES[name].build(spec, A).acting, episodes)[0]
    for name in ("ride", "novel_d")
  )
  for n, root, first in zip(visits, roots, firsts, strict=True):
    np.testing.assert_allclose(root, np.array(n) ** -0.5, rtol=1e-6)
    np.testing.assert_array_equal(first, np.array(n) == 1)


def test_the_ellipsoid_is_of_the_episode_and_of_one_embedding(play):
  bonus, weights = built("e3b"), weights_of("e3b")
  rng = np.random.default_rng(0)
  episodes = rng.normal(size=(3, 6, D)).astype(np.float32)
  (w, b), (found, _) = layers(weights), play(bonus.acting, episodes, weights)
  for episode, values in zip(episodes, found, strict=True):
    covariance = 0.1 * np.eye(4)
    for x, value in zip(episode @ w + b, values, strict=True):
      np.testing.assert_allclose(value, x @ np.linalg.solve(covariance, x), rtol=1e-3)
      covariance += np.outer(x, x)
  assert bonus.acting.refresh(weights, "new ones") is weights


def test_neighbours_are_of_all_episodes(play):
  bonus, weights = built("re3"), weights_of("re3")
  episodes = np.random.default_rng(0).normal(size=(3, 10, D)).astype(np.float32)
  w, b = layers(weights)
  features = episodes.reshape(-1, D) @ w + b
  expected = []
  for t, y in enumerate(features):
    distances = np.sort(np.linalg.norm(features[max(0, t - 20) : t] - y, axis=1))
    expected.append(distances[min(3, t) - 1] if t else 0.0)
  found = np.concatenate(play(bonus.acting, episodes, weights)[0])
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_hash_codes_are_counted_over_all_episodes(play):
  """Observations along a ray have one code."""
  bonus, weights = built("sim_hash"), weights_of("sim_hash")
  rng = np.random.default_rng(0)
  rays = rng.normal(size=(5, D))
  chosen = rng.integers(5, size=(4, 8))
  scales = rng.uniform(0.5, 2.0, size=(4, 8, 1))
  episodes = (rays[chosen] * scales).astype(np.float32)
  (w, _), flat = layers(weights), chosen.ravel()
  assert len({tuple(ray @ w > 0) for ray in rays}) == 5
  expected = [np.sum(flat[: t + 1] == ray) ** -0.5 for t, ray in enumerate(flat)]
  found = np.concatenate(play(bonus.acting, episodes, weights)[0])
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  assert bonus.acting_gives_reward and bonus.column == "r_int"


# In the learner.

LEARNT = [name for name in BONUSES if name not in ("sim_hash", "e3b")]


@pytest.mark.parametrize("name", LEARNT)
def test_padding_changes_nothing_and_one_transition_is_enough(name):
  rng = np.random.default_rng(0)
  real = rng.normal(size=(2, 3, D)).astype(np.float32)
  results = []
  for padding in (0.0, 7.0):
    rows = np.concatenate([real, np.full((2, 2, D), padding, np.float32)], axis=1)
    stored, mask = [0.5, 1.0, 0.2, padding, padding], [1, 1, 1, 0, 0]
    given = make_inputs(rows[0], [0, 1, 2, 0, 0], rows[1], stored, mask)
    r_int, state = compute(name)(initial(name).learning, given)
    results.append((r_int[:3], state))
  close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-7)
  jax.tree.map(close, *results)
  one = given._replace(mask=given.mask.at[1:].set(0.0))
  r_int, state = compute(name)(initial(name).learning, one)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves((r_int, state)))


def test_re3_is_the_logarithm_of_distances_over_their_deviation():
  state = initial("re3").learning
  seen = np.zeros(0)
  rng = np.random.default_rng(0)
  for _ in range(3):
    stored = rng.uniform(0, 5, size=4)
    x = np.zeros((4, D), np.float32)
    r_int, state = compute("re3")(state, make_inputs(x, [0] * 4, x, stored))
    seen = np.append(seen, stored)
    np.testing.assert_allclose(r_int, np.log1p(stored / seen.std()), rtol=1e-4)


@pytest.mark.parametrize("name", ["e3b", "e3b_rnd"])
def test_e3b_is_divided_by_its_deviation_alone_or_times_rnd(name):
  state = initial(name).learning
  inner, half = state[1], jax.jit(RND.build(SPEC, A).learning.compute)
  seen = np.zeros(0)
  rng = np.random.default_rng(0)
  for _ in range(3):
    x = rng.normal(size=(2, 4, D)).astype(np.float32)
    expected = stored = rng.uniform(0, 5, size=4)
    if name == "e3b_rnd":
      given = make_inputs(x[0], [0] * 4, x[1]).at("destination")
      novelty, inner = half(inner, given)
      expected = stored * np.asarray(novelty)
    r_int, state = compute(name)(state, make_inputs(x[0], [0] * 4, x[1], stored))
    seen = np.append(seen, expected)
    np.testing.assert_allclose(r_int, expected / seen.std(), rtol=1e-3)


def test_a_lifelong_bonus_with_a_stored_value_is_refused():
  for lifelong in (counts.Counts(), novel_d.NovelD(), ngu.NeverGiveUp()):
    with pytest.raises(ValueError, match=r"E3B\.lifelong is"):
      e3b.E3B(lifelong=lifelong).build(SPEC, A)


def test_equal_models_do_not_disagree():
  state = initial("disagreement").learning
  equal = jax.tree.map(lambda x: np.broadcast_to(x[:1], x.shape), state.members)
  x = np.random.default_rng(0).normal(size=(2, 6, D)).astype(np.float32)
  given = make_inputs(x[0], [0, 1, 2] * 2, x[1])
  r_int, after = compute("disagreement")(state._replace(members=equal), given)
  assert np.mean(r_int) * np.sqrt(after.moments.variance) < 1e-10
  r_int, _ = compute("disagreement")(state, given)
  assert np.all(r_int > 0)


# Updates, against float64.


class Reference:
  """A bonus's parameters, and Adam, in numpy."""

  def __init__(self, state, adam, gradient_of):
    self.params, self.fixed = self.parts(state)
    self.adam, self.gradient_of = adam(self.params), gradient_of

  def update(self, x, action, stored) -> np.ndarray:
    """r_int `[B, 1]` of windows `[B, 2, ...]`, before the update."""
    r_int = self.r_int(self.params, x, action, stored)
    loss = lambda params: np.mean(self.losses(params, x, action))  # noqa: E731
    gradients = {n: self.gradient_of(loss, self.params, n) for n in self.params}
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    gradients = {n: g * min(1.0, 40.0 / norm) for n, g in gradients.items()}
    self.params = self.adam.step(self.params, gradients, self.rate)
    return r_int


class OfNovelD(Reference):
  rate = 1e-4

  def parts(self, state):
    names = ("w", "b")
    predictor, target = layers(state.predictor), layers(state.target)
    return dict(zip(names, predictor, strict=True)), target

  def errors(self, params, x):
    w, b = self.fixed
    return np.sum((x @ (params["w"] - w) + params["b"] - b) ** 2, axis=-1)

  def r_int(self, params, x, action, stored):
    n = np.sqrt(self.errors(params, x))
    return np.maximum(n[:, 1:] - 0.5 * n[:, :-1], 0.0) * stored[:, 1:]

  def losses(self, params, x, action):
    return self.errors(params, x[:, 1:])


class OfICM(Reference):
  rate = 1e-3

  def parts(self, state):
    params = state.params
    trained = [
      *layers(params.embedding.embedding),
      *layers(params.embedding.inverse),
      *layers(params.forward),
    ]
    return dict(zip("abcdefghij", trained, strict=True)), None

  def errors(self, params, x, action):
    """(−log h, ½‖g − φ'‖²) of all transitions `[B, n]`."""
    w, b, *others = params.values()
    phi = x @ w + b
    both = np.concatenate([phi[:, :-1], phi[:, 1:]], axis=-1)
    logits = perceptron(both, *others[:4])
    taken = np.take_along_axis(logits, action[:, :-1, None], axis=-1)[..., 0]
    inverse = np.log(np.exp(logits).sum(axis=-1)) - taken
    one_hot = np.eye(A)[action[:, :-1]]
    predicted = perceptron(np.concatenate([phi[:, :-1], one_hot], -1), *others[4:])
    return inverse, 0.5 * np.sum((predicted - phi[:, 1:]) ** 2, axis=-1)

  def r_int(self, params, x, action, stored):
    return self.errors(params, x, action)[1]

  def losses(self, params, x, action):
    inverse, forward = self.errors(params, x, action)
    return 0.8 * inverse + 0.2 * forward


@pytest.mark.parametrize(("name", "reference"), [("novel_d", OfNovelD), ("icm", OfICM)])
def test_three_updates(adam, gradient_of, name, reference):
  state, rng = initial(name).learning, np.random.default_rng(0)
  expected = reference(state, adam, gradient_of)
  for _ in range(3):
    x = rng.normal(size=(6, 2, D)).astype(np.float32)
    action, stored = rng.integers(0, A, (6, 2)), rng.integers(0, 2, (6, 2))
    r_int = expected.update(x.astype(np.float64), action, stored)
    transitions = make_inputs(x[:, 0], action[:, 0], x[:, 1], stored[:, 1])
    found, state = compute(name)(state, transitions)
    np.testing.assert_allclose(found, r_int[:, 0], rtol=1e-3, atol=1e-6)
    params, _ = expected.parts(state)
    for key, value in params.items():
      np.testing.assert_allclose(value, expected.params[key], atol=1e-5)


def test_e3bs_embedding_learns_from_the_real_rows(windows, vector_spec):
  """Inverse dynamics of windows that end early, and of nothing beyond their end."""
  observation, action, number = windows
  model = dynamics.Dynamics(embedding_size=3, hidden_size=16, learning_rate=3e-2)
  training = e3b.E3B(model).build(vector_spec, A).acting.training
  update = jax.jit(training.update)
  state = jax.jit(training.init)(KEY)
  changed = observation.copy()
  for b, n in enumerate(number):
    changed[b, n + 1 :] = -5.0
  a, b = (update(state, x, action, number) for x in (observation, changed))
  jax.tree.map(np.testing.assert_array_equal, a, b)
  after = update(a[0], observation, action, number)[1]
  assert after["inverse_loss"] < a[1]["inverse_loss"]
