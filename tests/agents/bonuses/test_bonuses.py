"""Each bonus by hand, and against plain counting."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import counts, infogain, qu, rnd
from explorax.agents.bonuses import types as bonus_types
from explorax.environments import encodings, specs

DENSE = dm_env.specs.Array((3,), np.float32)
INDEX = encodings.make(specs.OneHotArray((2, 3))).spec


def inputs(q_tm1, a_tm1, observation=0.0) -> bonus_types.Inputs:
  """Transitions whose destinations are their sources and 1."""
  q_tm1, zeros = jnp.asarray(q_tm1, jnp.float32), jnp.zeros(len(a_tm1))
  observation = jnp.asarray(np.broadcast_to(observation, (len(a_tm1), 3)), jnp.float32)
  return bonus_types.Inputs(
    td=jnp.zeros(q_tm1.shape[:2]),
    a_tm1=jnp.asarray(a_tm1, jnp.int32),
    q_tm1=q_tm1,
    q_t=q_tm1 + 1,
    observation_tm1=observation,
    observation_t=observation + 1,
    stored=zeros,
    mask=zeros + 1,
    num_later=zeros,
    q=q_tm1,
    observation=observation,
  )


def compute(bonus: bonus_types.Bonus, given: bonus_types.Inputs) -> np.ndarray:
  half = bonus.build(DENSE, 2).learning
  r_int, _ = jax.jit(half.compute)(half.init(jax.random.PRNGKey(0)), given)
  return np.asarray(r_int)


def test_q_uncertainty_is_of_the_action_taken():
  q = np.zeros((2, 2, 2))
  q[:, 0] = [[0.0, 9.0], [2.0, -9.0]]
  q[:, 1] = [[9.0, 1.0], [-9.0, 5.0]]
  r_int = compute(qu.QUncertainty(), inputs(q, (0, 1)))
  np.testing.assert_allclose(r_int, [np.sqrt(2), np.sqrt(8)], rtol=1e-6)


def test_infogain_has_a_temperature():
  """At 2, a gap of 2 log 3 is (3/4, 1/4), and the mean is (1/2, 1/2)."""
  q = np.array([[[2 * np.log(3), 0.0]], [[0.0, 2 * np.log(3)]]])
  r_int = compute(infogain.InfoGain(temperature=2.0), inputs(q, (0,)))
  expected = 0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5)
  np.testing.assert_allclose(r_int, [expected], atol=1e-6)


@pytest.mark.parametrize(
  ("normalisation", "decay"), [("centred", None), ("deviation", 0.5), ("variance", 0.5)]
)
def test_rnd_normalises_by_moments(normalisation, decay):
  """By hand: the errors are those of the same networks without normalisation."""
  halves = [
    rnd.RND(hidden_sizes=(4,), output_size=2, decay=decay, normalisation=how)
    .build(DENSE, 2)
    .learning
    for how in ("none", normalisation)
  ]

  @jax.jit
  def compute(states, batch):
    pairs = zip(halves, states, strict=True)
    return tuple(zip(*(half.compute(s, batch) for half, s in pairs), strict=True))

  rng = np.random.default_rng(0)
  zeros = np.zeros((1, 4, 2)), (0,) * 4
  batches = [inputs(*zeros, rng.normal(size=(4, 3))) for _ in range(3)]
  states = jax.jit(lambda key: [half.init(key) for half in halves])(
    jax.random.PRNGKey(0)
  )
  history = []
  for batch in batches:
    (errors, r_int), states = compute(states, batch)
    history.append(np.asarray(errors, np.float64))
    kept = 1.0 if decay is None else decay
    weights = np.array([kept ** (len(history) - 1 - i) for i in range(len(history))])
    weights /= weights.sum()
    mean = sum(w * e.mean() for w, e in zip(weights, history, strict=True))
    square = sum(w * (e**2).mean() for w, e in zip(weights, history, strict=True))
    variance = square - mean**2
    expected = {
      "centred": (history[-1] - mean) / np.sqrt(variance),
      "deviation": history[-1] / np.sqrt(variance),
      "variance": history[-1] / variance,
    }[normalisation]
    np.testing.assert_allclose(r_int, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("spec", [INDEX, DENSE])
def test_counts_are_a_dictionary_of_visits(spec):
  bonus = counts.Counts().build(spec, 2).acting
  observe = jax.jit(bonus.observe)
  rng = np.random.default_rng(0)
  state, visits = bonus.init(), {}
  for _ in range(100):
    name = int(rng.integers(-1, 6))
    observation = np.int32(name) if spec is INDEX else np.full(3, name, np.float32)
    action, last = int(rng.integers(2)), bool(rng.random() < 0.2)
    r_int, state = observe((), state, observation, jnp.int32(action), jnp.bool_(last))
    if last:  # Nothing is taken there: no visit, and no reward for one.
      assert r_int == 0.0
      continue
    visits[name, action] = visits.get((name, action), 0) + 1
    np.testing.assert_allclose(r_int, (visits[name, action] + 0.01) ** -0.5, rtol=1e-6)
  assert state.sum() == sum(visits.values())
  assert len(visits) == 14
