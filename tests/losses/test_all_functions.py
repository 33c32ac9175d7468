"""What holds for all losses: jitted and batched as alone, and what gradients reach."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core

SIZES = {"T": 6, "A": 3, "K": 4, "D": 5, "N": 7}
# The axes of each argument; single transitions have no T.
AXES = {
  **dict.fromkeys(("q_tm1", "q_t", "q_t_value", "q_t_selector", "pi_t"), "TA"),
  **dict.fromkeys(("a_tm1", "a_t", "r_t", "discount_t", "mu_t", "lambda_"), "T"),
  **dict.fromkeys(("q_a_t", "v_t", "c_t", "rho_t", "novelty_tm1", "novelty_t"), "T"),
  **dict.fromkeys(("td", "mask"), "K"),
  **dict.fromkeys(("q_atoms_tm1", "q_atoms_t"), "N"),
  **dict.fromkeys(("q_logits_tm1", "q_logits_t"), "AN"),
  **dict.fromkeys(("prediction", "target", "embedding_t", "phi_tm1"), "D"),
  **dict.fromkeys(("psi_tm1", "psi_t"), "AD"),
  **dict.fromkeys(("action", "temperature", "eta", "alpha"), ""),
  "predictions": "KD",
  "q": "KA",
  "logits": "A",
}
SINGLE = (
  "q_learning",
  "double_q",
  "categorical_double_q",
  "categorical_double_q_kl",
  "successor_features",
)
# The arguments that a gradient reaches, where it is not `q_tm1` alone; None: all.
TRAINED = {
  "bootstrapped_td": {"td"},
  "categorical_double_q": {"q_logits_tm1"},
  "categorical_double_q_kl": {"q_logits_tm1"},
  "disagreement": None,
  "forward_dynamics": {"prediction", "embedding_t"},
  "inverse_dynamics": {"logits"},
  "non_markov_returns": None,
  "novel_d": None,
  "off_policy_returns": None,
  "rnd_error": {"prediction"},
  "successor_features": {"psi_tm1"},
  "infogain_bonus": set(),
  "q_uncertainty": set(),
  "sequence_priority": set(),
  "tdu_bonus": set(),
}
NAMES = [
  name
  for name in losses.__all__
  if inspect.isfunction(getattr(losses, name))
  and name not in ("signed_hyperbolic_pair", "off_policy_q")
]


def _function(name):
  """The loss, with h if it takes one, and the names of its arguments."""
  loss = getattr(losses, name)
  names = [x for x in inspect.signature(loss).parameters if x not in ("n", "tx_pair")]
  fixed = {"n": 3} if name == "n_step_q" else {}
  if "tx_pair" in inspect.signature(loss).parameters:
    fixed["tx_pair"] = losses.signed_hyperbolic_pair()

  def function(*arguments):
    return loss(**dict(zip(names, arguments, strict=True)), **fixed)

  return function, names


def _arguments(name, seed):
  """Made up: probabilities where they are needed, a termination among discounts."""
  rng, arguments = np.random.default_rng(seed), []
  for argument in _function(name)[1]:
    axes = AXES[argument].replace("T", "" if name in SINGLE else "T")
    shape = tuple(SIZES[axis] for axis in axes)
    if argument in ("a_tm1", "a_t", "action"):
      value = rng.integers(0, SIZES["A"], shape, np.int32)
    elif argument == "pi_t":
      value = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    elif argument == "mask":
      value = rng.permutation(np.arange(shape[0]) % 2)
    elif argument.startswith("q_atoms"):
      value = np.linspace(-2, 2, *shape)
    elif argument == "discount_t":
      value = rng.choice([0.0, 0.9, 1.0], shape, p=[0.1, 0.7, 0.2])
    elif argument in ("mu_t", "lambda_", "c_t", "temperature", "eta", "alpha"):
      value = rng.uniform(0.1, 1, shape)
    else:
      value = rng.normal(size=shape)
    is_number = argument in ("a_tm1", "a_t", "action")
    arguments.append(np.asarray(value, np.int32 if is_number else np.float32))
  return arguments


@functools.cache
def _run(name):
  """(arguments `[2, ...]`) → (results, gradients of sums, the last by itself)."""
  function, _ = _function(name)
  floats = [i for i, x in enumerate(_arguments(name, 0)) if x.dtype == np.float32]

  def both(*arguments):
    result = function(*arguments)
    return jnp.sum(result), result

  @jax.jit
  def run(*columns):
    gradients, results = jax.vmap(jax.grad(both, floats, has_aux=True))(*columns)
    alone = function(*(column[-1] for column in columns))
    return results, dict(zip(floats, gradients, strict=True)), alone

  return lambda *columns: jax.device_get(run(*columns))


def _columns(name):
  batch = [_arguments(name, seed) for seed in range(2)]
  return [np.stack(column) for column in zip(*batch, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_jitted_and_batched_as_alone(name):
  results, _, alone = _run(name)(*_columns(name))
  np.testing.assert_allclose(results[-1], alone, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_what_is_trained_alone(name):
  _, names = _function(name)
  trained, columns = TRAINED.get(name, {"q_tm1"}), _columns(name)
  for i, gradient in _run(name)(*columns)[1].items():
    if trained is None:
      assert np.isfinite(gradient).all()
    elif names[i] == "q_tm1":  # A target less the prediction.
      expected = -np.eye(SIZES["A"])[columns[names.index("a_tm1")]]
      np.testing.assert_array_equal(gradient, expected)
    else:
      assert np.any(gradient) == (names[i] in trained), names[i]


@pytest.mark.parametrize("name", [x for x in NAMES if "a_tm1" in _function(x)[1]])
def test_an_action_that_does_not_exist_gives_nan_or_an_error(name):
  function, names = _function(name)
  columns, bad = _columns(name), (-1, SIZES["A"])
  columns[names.index("a_tm1")].T[...] = bad
  assert np.isnan(_run(name)(*columns)[0]).all()
  for row, action in enumerate(bad):
    with pytest.raises(ValueError, match=f"{name}: a_tm1 is {action};"):
      function(*(column[row] for column in columns))
