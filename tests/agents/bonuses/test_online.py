"""A bonus of several environments: what they share, saving."""

import collections
import dataclasses

import chex
import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import counts, ngu, re3, rnd, tdu, types
from explorax.agents.bonuses.wrappers import online

NUM_ENVS = 3
LENGTHS = np.array([4, 7, 5])  # Of the environments' episodes.
BYTES = gymnasium.spaces.Box(0, 255, (7, 7, 3), np.uint8)
NUMBERS = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
ACTIONS = gymnasium.spaces.Discrete(2)
SMALL_RND = rnd.RND((5,), 4, normalisation="deviation")


@pytest.fixture
def make(make_online):
  """(bonus, number of environments, settings) → the bonus before the first step."""
  settings = {"update_period": 3, "beta": exploration.Linear(1.0, 0.0, 12)}

  def make(bonus, num_envs=NUM_ENVS, **changes):
    return make_online(bonus, NUMBERS, ACTIONS, num_envs, **{**settings, **changes})

  return make


def play(bonus, times, chosen=slice(None)):
  """r_int `[T, N]` of some environments at these times."""
  rng = np.random.default_rng(0)
  observations = rng.integers(-3, 4, size=(50, NUM_ENVS, 2))[:, chosen]
  actions = rng.integers(2, size=(50, NUM_ENVS))[:, chosen]
  r_int, lengths = [], LENGTHS[chosen]
  for t in times:
    if t == 0:
      bonus.begin(observations[0])
    done = (t + 1) % lengths == 0
    r_int.append(bonus.step(actions[t], observations[t + 1], done)[1])
    bonus.begin(-observations[t + 1], done)
  return np.array(r_int)


class Trained(types.Bonus):
  """r_int is the number of updates; the sum of all that was trained on is kept.

  With a learning half, which keeps sums as well, r_int is a hundred times as large.
  """

  def __init__(self, keeps_weights, learns):
    self.refresh = (lambda held, fresh: held) if keeps_weights else None
    self.learning = types.Learning(self.init, self.compute) if learns else None

  def init(self, key):
    return jnp.float32(0), jnp.float32(0), jnp.int32(0), jnp.float32(0)

  def compute(self, state, inputs):
    change = (inputs.observation_t - inputs.observation_tm1).sum(1) @ inputs.mask
    new = jnp.float32(1), change, inputs.a_tm1.sum(), inputs.stored.sum()
    assert len(inputs.stored) in (NUM_ENVS, 3 * NUM_ENVS)
    total = tuple(a + b for a, b in zip(state, new, strict=True))
    return 99 * state[0] + inputs.stored, total

  def build(self, observation_spec, num_actions):
    def update(state, observation, action, num_transitions):
      assert observation.shape == (3 * NUM_ENVS, 2, 2)
      change = jnp.sum(
        (observation[:, 1] - observation[:, 0]) * num_transitions[:, None]
      )
      return (state[0] + 1.0, state[1] + change, state[2] + jnp.sum(action[:, 0])), {}

    training = types.Training(
      lambda key: (jnp.float32(0), jnp.float32(0), jnp.int32(0)), update, lambda x: x[0]
    )
    acting = types.Acting(
      lambda: jnp.float32(0),
      lambda state: state,
      lambda weights, state, *step: (weights, state),
      training,
      self.refresh,
    )
    return types.IntrinsicReward("destination", acting, self.learning)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("keeps_weights", [False, True])
def test_both_halves_learn_once_from_each_valid_transition(make, keeps_weights, learns):
  bonus, rng = make(Trained(keeps_weights, learns)), np.random.default_rng(0)
  held, transitions, observations = np.zeros(3), [], np.zeros((3, 2))
  ended = np.zeros(3, bool)
  bonus.begin(observations)
  for t in range(30):
    actions, done = rng.integers(2, size=3), (t + 1) % LENGTHS == 0
    reached, resets_itself = rng.integers(-3, 4, size=(3, 2)), ended
    np.testing.assert_array_equal(bonus.ended, resets_itself)
    updates = len(transitions) // 9
    _, r_int = bonus.step(actions, reached, done)
    values = held if keeps_weights else np.full(3, updates)
    # A learning half has no r_int before the first update.
    expected = (values + 99 * updates) * (updates > 0) if learns else values
    np.testing.assert_array_equal(r_int, np.where(resets_itself, 0, expected))
    for i in np.flatnonzero(~resets_itself):
      change = (reached - observations)[i].sum()
      transitions.append((change, actions[i], values[i]))
    observations, ended = reached, done & ~resets_itself
    begins = resets_itself
    if t % 2:
      begins = resets_itself | ended
      observations = np.where(ended[:, None], -reached, reached)
      bonus.begin(observations, ended)
      ended = np.zeros(3, bool)
    held = np.where(begins, len(transitions) // 9, held)
  updates = len(transitions) // 9
  sums = np.sum(transitions[: 9 * updates], axis=0)
  state = bonus._learnt.learner
  assert state.training[0] == updates > 5
  np.testing.assert_array_equal(state.training[1:], sums[:2])
  if learns:
    np.testing.assert_array_equal(state.learning, [updates, *sums])


def test_an_environment_is_as_if_alone_where_nothing_is_shared(make):
  episodic = ngu.NeverGiveUp(states="random", rnd=False, memory_capacity=50)
  together = play(make(episodic), range(20))
  alone = play(make(episodic, 1), range(20), [1])
  assert alone.any()
  np.testing.assert_allclose(together[:, [1]], alone, rtol=2e-5)


def test_counts_are_of_all_environments():
  start = 3  # The least state and action.
  spaces = (gymnasium.spaces.Discrete(n, start=start) for n in (5, 2))
  bonus = online.OnlineBonus(counts.Counts(), *spaces, 3)
  visits, rng = collections.Counter(), np.random.default_rng(0)
  states, ended = start + rng.integers(5, size=3), np.zeros(3, bool)
  bonus.begin(states)
  for _ in range(20):
    actions, done = start + rng.integers(2, size=3), rng.random(3) < 0.2
    expected = np.zeros(3)
    for i in np.flatnonzero(~ended):
      visits[states[i], actions[i]] += 1
      expected[i] = (visits[states[i], actions[i]] + 0.01) ** -0.5
    states = start + rng.integers(5, size=3)
    _, r_int = bonus.step(actions, states, done)
    np.testing.assert_allclose(r_int, expected, rtol=1e-5)
    ended = done & ~ended


@pytest.mark.parametrize(
  ("bonus", "space", "settings", "message"),
  [
    (tdu.TDUncertainty(), NUMBERS, {}, "TDUncertainty is a bonus of an agent's values"),
    (SMALL_RND, gymnasium.spaces.Dict(a=NUMBERS), {}, "join the parts into one"),
    (SMALL_RND, NUMBERS, {"update_period": 0}, "update_period is 0"),
    (SMALL_RND, NUMBERS, {"view": "minigrid"}, "view is 'minigrid', and observations"),
    (SMALL_RND, BYTES, {"view": "grid"}, "view is 'grid', and observations are"),
    (SMALL_RND, BYTES, {}, "pass view='minigrid' or view='array'"),
  ],
)
def test_what_a_bonus_cannot_take_is_refused(bonus, space, settings, message):
  with pytest.raises((TypeError, ValueError), match=message):
    online.OnlineBonus(bonus, space, ACTIONS, **settings)


def test_normalised_values_are_over_the_deviation_so_far(make):
  bonus = counts.Counts()
  raw, normalised = (play(make(bonus, normalise=n), range(9)) for n in (False, True))
  deviations = [np.std(raw[: t + 1], dtype=np.float64) for t in range(9)]
  differ = np.array(deviations) > 1e-4
  expected = raw[differ] / np.array(deviations)[differ, None]
  np.testing.assert_allclose(normalised[differ], expected, rtol=1e-4)
  assert not differ.all() and not normalised[~differ].any()


def test_a_schedule_of_beta_is_of_the_steps_of_all_environments(make):
  bonus = make(counts.Counts(), normalise=False)
  play(bonus, [0])
  assert bonus.beta == pytest.approx(1 - 3 / 12)
  zeros = np.zeros((NUM_ENVS, 2))
  bonus.step([0] * 3, zeros, [False, True, False])
  assert bonus.beta == pytest.approx(1 - 6 / 12)
  added, r_int = bonus.step([0] * 3, zeros, [False] * 3)
  np.testing.assert_allclose(added, 0.5 * r_int, rtol=1e-6)
  assert added[1] == 0 and bonus.beta == pytest.approx(1 - 8 / 12)


def test_what_was_learnt_is_loaded_for_any_number_of_environments(make, tmp_path):
  bonus = ngu.NeverGiveUp(states="random", embedding_size=4, memory_capacity=9)
  first, path = make(bonus, normalise=True), tmp_path / "bonus.npz"
  play(first, range(10))
  first.save(path)
  second = make(bonus, 4, normalise=True, seed=1)
  second.load(path)
  learnt, loaded = first._learnt, second._learnt
  assert learnt.updates > 0
  for name in ("learner", "moments", "steps", "updates"):
    chex.assert_trees_all_equal(getattr(loaded, name), getattr(learnt, name))
  for ours, theirs in zip(loaded.acting.moments, learnt.acting.moments, strict=True):
    np.testing.assert_array_equal(ours, np.asarray(theirs)[[0, 1, 2, 0]])
  # Episodes begin, with what was learnt.
  states = np.random.default_rng(1).normal(size=(6, 4, 2))
  r_int = [second.step([0] * 4, x, [False] * 4)[1] for x in states]
  assert not r_int[0].any() and np.isfinite(r_int).all() and np.all(r_int[2:])
  with pytest.raises(ValueError, match="is of another bonus"):
    make(counts.Counts(), normalise=False).load(path)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "nan"), (1e300, "inf")])
@pytest.mark.parametrize("call", ["begin", "step"])
def test_observations_that_are_not_finite_are_refused(make, call, value, word):
  """One of them would make what all environments share NaN for ever."""
  bonus, other = make(SMALL_RND), make(SMALL_RND)
  play(bonus, range(4)), play(other, range(4))
  observations = np.zeros((3, 2))
  observations[1, 0] = value
  with pytest.raises(ValueError, match=f"environment 1 .* with {word},"):
    if call == "begin":
      bonus.begin(observations)
    else:
      bonus.step([0] * 3, observations, [False] * 3)
  # An environment in which no episode begins is not looked at.
  bonus.begin(observations, np.array([True, False, True]))
  other.begin(np.zeros((3, 2)), np.array([True, False, True]))
  np.testing.assert_array_equal(play(bonus, range(5, 9)), play(other, range(5, 9)))


@pytest.mark.parametrize(
  "bonus",
  [
    dataclasses.replace(SMALL_RND, decay=None),
    re3.RE3(embedding_size=4, memory_capacity=30),
  ],
)
def test_statistics_survive_an_outlier(make, bonus):
  wrapped, other = make(bonus), make(bonus)
  play(wrapped, range(12)), play(other, range(12))
  observations = np.zeros((3, 2))
  observations[0, 1] = 1e10
  for x in (observations, np.zeros((3, 2))):
    wrapped.step([0] * 3, x, [False] * 3)
    other.step([0] * 3, np.zeros((3, 2)), [False] * 3)
  after, usual = play(wrapped, range(20)), play(other, range(20))
  assert np.isfinite(after).all()
  assert np.mean(after[3:]) > 0.1 * np.mean(usual[3:]) > 0
