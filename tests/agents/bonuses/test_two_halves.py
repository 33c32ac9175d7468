"""Bonuses of two halves: what acting stores, and what the learner makes of it."""

import collections
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


def play(bonus, episodes, weights=()) -> list[list[float]]:
  """The stored values of the observations of each episode, its last one included."""
  half, values = bonus.acting, []
  observe = jax.jit(half.observe)
  state = half.init()
  for episode in episodes:
    state = half.begin_episode(state) if half.begin_episode else state
    values.append([])
    for t, observation in enumerate(episode):
      last = jnp.bool_(t == len(episode) - 1)
      value, state = observe(weights, state, observation, jnp.int32(0), last)
      values[-1].append(float(value))
  return values


def weights_of(bonus) -> Any:
  training = bonus.acting.training
  return training.weights(bonus.init(KEY).training)


# While acting.


@pytest.mark.parametrize("spec", [SPEC, INDEX])
def test_visits_are_of_the_episode_and_of_every_observation(spec):
  """RIDE stores 1 / √N, NovelD whether N is 1."""
  rng = np.random.default_rng(0)
  places = [rng.integers(-1, 6, size=rng.integers(1, 12)) for _ in range(5)]
  episodes = [
    [np.int32(s) if spec is INDEX else np.full(D, s, np.float32) for s in episode]
    for episode in places
  ]
  visits = []
  for episode in places:
    seen = collections.Counter()
    visits.append([])
    for s in episode:
      seen[s] += 1
      visits[-1].append(seen[s])
  roots = play(BONUSES["ride"].build(spec, A), episodes)
  firsts = play(BONUSES["novel_d"].build(spec, A), episodes)
  for n, root, first in zip(visits, roots, firsts, strict=True):
    np.testing.assert_allclose(root, np.array(n) ** -0.5, rtol=1e-6)
    np.testing.assert_array_equal(first, np.array(n) == 1)


def test_the_ellipsoid_is_of_the_episode_and_of_one_embedding():
  bonus = built("e3b")
  weights = weights_of(bonus)
  rng = np.random.default_rng(0)
  episodes = rng.normal(size=(3, 6, D)).astype(np.float32)
  (w, b), found = layers(weights), play(bonus, episodes, weights)
  for episode, values in zip(episodes, found, strict=True):
    covariance = 0.1 * np.eye(4)
    for x, value in zip(episode @ w + b, values, strict=True):
      np.testing.assert_allclose(value, x @ np.linalg.solve(covariance, x), rtol=1e-3)
      covariance += np.outer(x, x)
  assert bonus.acting.refresh(weights, "new ones") is weights


def test_neighbours_are_of_all_episodes():
  bonus = built("re3")
  weights = weights_of(bonus)
  episodes = np.random.default_rng(0).normal(size=(3, 10, D)).astype(np.float32)
  w, b = layers(weights)
  features = episodes.reshape(-1, D) @ w + b
  expected = []
  for t, y in enumerate(features):
    distances = np.sort(np.linalg.norm(features[max(0, t - 20) : t] - y, axis=1))
    expected.append(distances[min(3, t) - 1] if t else 0.0)
  found = np.concatenate(play(bonus, episodes, weights))
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_hash_codes_are_counted_over_all_episodes():
  """Observations along a ray have one code."""
  bonus = built("sim_hash")
  weights = weights_of(bonus)
  rng = np.random.default_rng(0)
  rays = rng.normal(size=(5, D))
  chosen = rng.integers(5, size=(4, 8))
  scales = rng.uniform(0.5, 2.0, size=(4, 8, 1))
  episodes = (rays[chosen] * scales).astype(np.float32)
  (w, _), seen = layers(weights), collections.Counter()
  assert len({tuple(ray @ w > 0) for ray in rays}) == 5
  expected = []
  for ray in chosen.ravel():
    seen[ray] += 1
    expected.append(seen[ray] ** -0.5)
  found = np.concatenate(play(bonus, episodes, weights))
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  assert bonus.acting_gives_reward and bonus.column == "r_int"


# In the learner.

LEARNT = [name for name in BONUSES if name != "sim_hash"]


@pytest.mark.parametrize("name", LEARNT)
def test_padding_changes_nothing_and_one_transition_is_enough(name):
  rng = np.random.default_rng(0)
  real = rng.normal(size=(2, 3, D)).astype(np.float32)
  results = []
  for padding in (0.0, 7.0):
    rows = np.concatenate([real, np.full((2, 2, D), padding, np.float32)], axis=1)
    stored, mask = [0.5, 1.0, 0.2, padding, padding], [1, 1, 1, 0, 0]
    given = make_inputs(rows[0], [0, 1, 2, 0, 0], rows[1], stored, mask)
    r_int, state = compute(name)(built(name).init(KEY).learning, given)
    results.append((r_int[:3], state))
  close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-7)
  jax.tree.map(close, *results)
  one = given._replace(mask=given.mask.at[1:].set(0.0))
  r_int, state = compute(name)(built(name).init(KEY).learning, one)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves((r_int, state)))


def test_re3_is_the_logarithm_of_distances_over_their_deviation():
  state = built("re3").init(KEY).learning
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
  state = built(name).init(KEY).learning
  inner = built(name).init(KEY).learning[1]
  seen = np.zeros(0)
  rng = np.random.default_rng(0)
  for _ in range(3):
    x = rng.normal(size=(2, 4, D)).astype(np.float32)
    expected = stored = rng.uniform(0, 5, size=4)
    if name == "e3b_rnd":
      half = RND.build(SPEC, A).learning
      given = make_inputs(x[0], [0] * 4, x[1]).at("destination")
      novelty, inner = half.compute(inner, given)
      expected = stored * np.asarray(novelty)
    r_int, state = compute(name)(state, make_inputs(x[0], [0] * 4, x[1], stored))
    seen = np.append(seen, expected)
    np.testing.assert_allclose(r_int, expected / seen.std(), rtol=1e-3)


def test_a_lifelong_bonus_with_a_stored_value_is_refused():
  for lifelong in (counts.Counts(), novel_d.NovelD(), ngu.NeverGiveUp()):
    with pytest.raises(ValueError, match=r"E3B\.lifelong is"):
      e3b.E3B(lifelong=lifelong).build(SPEC, A)


def test_equal_models_do_not_disagree():
  bonus = built("disagreement")
  state = bonus.init(KEY).learning
  equal = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), state.members)
  x = np.random.default_rng(0).normal(size=(2, 6, D)).astype(np.float32)
  given = make_inputs(x[0], [0, 1, 2] * 2, x[1])
  r_int, after = compute("disagreement")(state._replace(members=equal), given)
  assert np.mean(r_int) * np.sqrt(after.moments.variance) < 1e-10
  r_int, _ = compute("disagreement")(state, given)
  assert np.all(r_int > 0)


# Whole updates, against float64.


class Reference:
  """Double layers of a DQN and of its bonus, and their optimisers, in numpy."""

  def __init__(self, config, state, adam, gradient_of):
    self.config, self.gradient_of = config, gradient_of
    (w_0, b_0), (w_1, b_1) = (
      [np.array(layer[x][0], np.float64) for x in ("w", "b")]
      for layer in (*state.params.torso.values(), *state.params.heads.values())
    )
    if w_0.ndim == 1:  # A single member's torso has no axis of members.
      (layer,) = state.params.torso.values()
      w_0, b_0 = (np.array(layer[x], np.float64) for x in ("w", "b"))
    self.q = {"w_0": w_0, "b_0": b_0, "w_1": w_1, "b_1": b_1}
    self.target = dict(self.q)
    self.bonus, self.fixed = self.parts(state.bonus_state.learning)
    self.adams = adam(self.q, 0.999, 1e-2), adam(self.bonus)

  def update(self, rows: dict[str, np.ndarray]) -> tuple[float, float]:
    """The loss and the mean bonus, before the update of both."""
    x, action, n = rows["observation"], rows["action"], self.config.n_step
    real = rows["mask"][:, :n]
    r_int = self.r_int(self.bonus, x, action, rows["stored_bonus"]) * real
    targets = np.zeros(len(x))
    for b in range(len(x)):
      scale, t = 1.0, 0
      while t < n and real[b, t]:
        targets[b] += scale * (rows["reward"][b, t] + self.config.beta * r_int[b, t])
        scale *= 0.99 * rows["discount"][b, t]
        t += 1
      targets[b] += scale * perceptron(x[b, t], *self.target.values()).max()

    def q_loss(q):
      values = perceptron(x[:, 0], *q.values())[np.arange(len(x)), action[:, 0]]
      return 0.5 * np.mean((targets - values) ** 2)

    def bonus_loss(params):
      return np.sum(self.losses(params, x, action) * real) / real.sum()

    loss = q_loss(self.q)
    self.q, self.bonus = (
      adam.step(params, self.clipped(function, params, limit), rate)
      for adam, params, function, limit, rate in (
        (self.adams[0], self.q, q_loss, np.inf, 0.05),
        (self.adams[1], self.bonus, bonus_loss, 40.0, self.rate),
      )
    )
    return loss, r_int.sum() / real.sum()

  def clipped(self, loss, params, limit):
    gradients = {name: self.gradient_of(loss, params, name) for name in params}
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    return {name: g * min(1.0, limit / norm) for name, g in gradients.items()}


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
def test_three_updates(
  make_config, compiled, make_sample, adam, gradient_of, name, reference
):
  config = make_config(
    bonus=BONUSES[name],
    beta=0.7,
    n_step=2,
    optimizer_eps=1e-2,
    learning_rate=0.05,
    target_update_period=100,
  )
  init, update = compiled(config)
  state = init(KEY)
  expected = reference(config, state, adam, gradient_of)
  for seed in range(3):
    stored = np.random.default_rng(seed).integers(0, 2, (6, 3))
    sample = make_sample(seed, config, stored_bonus=stored)
    rows = {k: np.asarray(v, np.float64) for k, v in sample.rows.items()}
    loss, r_int = expected.update({**rows, "action": sample.rows["action"]})
    state, output = update(state, sample)
    np.testing.assert_allclose(output.metrics["loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(output.metrics["r_int"], r_int, rtol=1e-3)
    found, _ = expected.parts(state.bonus_state.learning)
    for key, value in found.items():
      np.testing.assert_allclose(value, expected.bonus[key], atol=1e-5)


def test_without_beta_it_is_the_agent_without_a_bonus(make_config, make_sample, learn):
  plain_config = make_config()
  samples = [make_sample(seed, plain_config) for seed in range(3)]
  plain, _ = learn(plain_config, samples)
  stored = {"stored_bonus": np.full((6, 2), 0.5)}
  samples = [make_sample(seed, plain_config, **stored) for seed in range(3)]
  other, output = learn(make_config(bonus=BONUSES["e3b_rnd"], beta=0.0), samples)
  assert output.metrics["r_int"] > 0
  for part in ("params", "target_params", "opt_state"):
    jax.tree.map(
      np.testing.assert_array_equal, getattr(plain, part), getattr(other, part)
    )


def test_e3bs_embedding_learns_from_the_real_rows(windows, vector_spec):
  """Inverse dynamics of windows that end early, and of nothing beyond their end."""
  observation, action, number = windows
  model = dynamics.Dynamics(embedding_size=3, hidden_size=16, learning_rate=3e-2)
  training = e3b.E3B(model).build(vector_spec, A).acting.training
  update = jax.jit(training.update)
  state = training.init(KEY)
  changed = observation.copy()
  for b, n in enumerate(number):
    changed[b, n + 1 :] = -5.0
  a, b = (update(state, x, action, number) for x in (observation, changed))
  jax.tree.map(np.testing.assert_array_equal, a, b)
  after = update(a[0], observation, action, number)[1]
  assert after["inverse_loss"] < a[1]["inverse_loss"]
