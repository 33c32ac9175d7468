"""Checks of the arguments of losses."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses
from explorax.losses import checks, indexing

pytestmark = pytest.mark.core


def _zeros(*shape, dtype=np.float32):
  return np.zeros(shape, dtype)


@pytest.mark.parametrize(
  ("value", "spec", "error", "message"),
  [
    (None, "float [T]", TypeError, "f: x is a NoneType; pass an array"),
    (_zeros(2, dtype=np.int32), "float [T]", TypeError, "int32, but float is needed"),
    (_zeros(2), "int [T]", TypeError, "float32, but int is needed"),
    (_zeros(2, dtype=bool), "number [T]", TypeError, "bool, but number is needed"),
    (True, "float []", TypeError, "bool, but float is needed"),
    (_zeros(2, dtype=np.complex64), "mask [T]", TypeError, "but mask is needed"),
    (_zeros(2, 3), "float [T]", ValueError, r"x has shape \[2, 3\], but \[T\]"),
    (_zeros(), "float [..., A]", ValueError, r"shape \[\], but \[..., A\]"),
    (_zeros(2, 3), "number [] or [T]", ValueError, r"but \[\] or \[T\]"),
    (_zeros(3, 0), "float [T, A]", ValueError, r"shape \[3, 0\], which is empty"),
  ],
)
def test_wrong_dtypes_ranks_and_empty_axes_are_refused(value, spec, error, message):
  with pytest.raises(error, match=message):
    checks.check("f", x=(value, spec))


def test_axes_with_one_letter_have_one_size():
  with pytest.raises(
    ValueError, match=r"f: y has shape \[4\], \[T\], but x has T = 3; give both"
  ):
    checks.check("f", x=(_zeros(3, 2), "float [T, A]"), y=(_zeros(4), "float [T]"))
  with pytest.raises(ValueError, match=r"y has shape \[3\].*x has \.\.\. = \(4,\)"):
    checks.check(
      "f",
      x=(_zeros(4, 2), "float [..., A]"),
      y=(_zeros(3, dtype=np.int32), "int [...]"),
    )


def test_a_decorated_function_is_checked_by_the_names_of_its_arguments():
  @checks.arguments(x="float [T]", y="float [T]")
  def function(x, y=None, *, z=0):
    """Adds."""
    return x + (0 if y is None else y) + z

  assert (function.__name__, function.__doc__) == ("function", "Adds.")
  np.testing.assert_array_equal(function(_zeros(2), z=1), [1, 1])
  np.testing.assert_array_equal(function(y=_zeros(2), x=_zeros(2)), [0, 0])
  with pytest.raises(ValueError, match=r"function: y has shape \[3\].*x has T = 2"):
    function(_zeros(2), _zeros(3))
  with pytest.raises(TypeError, match="function: x is a NoneType"):
    function(None)
  with pytest.raises(TypeError, match="missing"):
    function(y=_zeros(2))


def test_arguments_are_refused_while_tracing():
  @jax.jit
  def function(x):
    checks.check("f", x=(x, "float [T]"))
    return x

  with pytest.raises(ValueError, match=r"\[2, 3\], but \[T\]"):
    function(_zeros(2, 3))
  jax.vmap(function)(_zeros(2, 3))


def test_untraced_numbers_outside_their_range_are_refused():
  def positive_share(x):
    checks.check_in_range("f", "eta", x, 0, 1)
    checks.check_positive("f", "eta", x)
    return x

  positive_share(1)
  jax.jit(positive_share)(jnp.float32(2))
  for eta in (-0.1, 1.5, float("nan"), jnp.float32(1.5)):
    with pytest.raises(ValueError, match=rf"f: eta is {eta}; it must be in \[0, 1\]"):
      positive_share(eta)
  with pytest.raises(ValueError, match="f: eta is 0; it must be positive"):
    positive_share(0)


@pytest.mark.parametrize("kind", ["int", "state", "level"])
def test_untraced_indices_outside_their_axis_are_refused(kind):
  spec = {"int": "count [A]", "state": "count [S]", "level": "count [L]"}[kind]

  def index(i):
    checks.check("f", x=(np.array([7, 8, 9]), spec), i=(i, f"{kind} []"))
    return i

  index(2)
  jax.jit(index)(3)
  for i in (-1, 3):
    with pytest.raises(ValueError, match=rf"f: i is {i}; it must be in \[0, 2\]"):
      index(i)


@pytest.mark.parametrize("index", [indexing.gather, indexing.select])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_indexing_in_either_way(index, shape):
  rng = np.random.default_rng(0)
  values = rng.normal(size=shape).astype(np.float32)
  actions = rng.integers(0, 5, size=shape[:-1]).astype(np.int32)
  expected = np.empty(shape[:-1], np.float32)
  for at in np.ndindex(shape[:-1]):
    expected[at] = values[at][actions[at]]
  np.testing.assert_array_equal(index(values, actions), expected)
  np.testing.assert_array_equal(jax.jit(index)(values, actions), expected)


@pytest.mark.parametrize("index", [indexing.gather, indexing.select])
def test_actions_that_do_not_exist_are_nan_and_others_values_do_not_matter(index):
  values = np.array([[1, np.nan, 3]] * 4, np.float32)
  actions = np.array([0, 2, 3, -1], np.int32)
  np.testing.assert_array_equal(index(values, actions), [1, 3, np.nan, np.nan])


def _needed(name: str) -> list[str]:
  """The arguments of a loss that have no default."""
  function = getattr(losses, name)
  if not inspect.isfunction(function):
    return []
  parameters = inspect.signature(function).parameters
  return [key for key, p in parameters.items() if p.default is p.empty]


@pytest.mark.parametrize("name", [*filter(_needed, losses.__all__)])
def test_every_loss_checks_its_arguments(name):
  with pytest.raises((TypeError, ValueError), match=name):
    getattr(losses, name)(**{key: [0.0] for key in _needed(name)})
