"""Checks the shapes and dtypes of a function's arguments while it is traced.

A specification is written as in docstrings: `float [T, A]`, `number [] or [T]`,
`int [...]`. A letter is the same size in all arguments of a call, `...` is any number
of axes, the same in all arguments, and no axis may be empty. An `int` is an action, in
[0, A) if there is an axis A; `state` and `level` are indices of the axes S and L.

Not chex's assertions: these errors name the function, the argument and the remedy.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# The dtypes that each word accepts, and one to convert others to.
_INT = ((jnp.integer,), "int32")
_KINDS: dict[str, tuple[tuple[Any, ...], str]] = {
  "float": ((jnp.floating,), "float32"),
  "number": ((jnp.floating, jnp.integer), "float32"),
  "mask": ((jnp.floating, jnp.integer, jnp.bool_), "float32 or bool"),
  **dict.fromkeys(("int", "count", "state", "level"), _INT),
}

# The axis that an index refers to.
_INDEXED_AXES = {"int": "A", "state": "S", "level": "L"}


def arguments(**specs: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
  """A decorator that applies `check` to the arguments named, if they are not None."""

  def decorate(function: Callable[P, R]) -> Callable[P, R]:
    parameters = inspect.signature(function).parameters
    optional = {name for name, p in parameters.items() if p.default is None}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
      values = dict(zip(parameters, args, strict=False)) | kwargs
      check(
        function.__name__,
        **{
          name: (values[name], spec)
          for name, spec in specs.items()
          if name in values and not (values[name] is None and name in optional)
        },
      )
      if "tx_pair" in values:
        _check_pair(function.__name__, values["tx_pair"])
      return function(*args, **kwargs)

    return checked

  return decorate


def check(function: str, **arguments: tuple[Any, str]) -> None:
  """Refuses an argument of the wrong dtype, rank or size, with its name in the error.

  Args:
    function: the name of the function called.
    **arguments: name → (value, specification), for example `(q_t, "float [T, A]")`.

  Raises:
    TypeError: if an argument is not an array, or has the wrong dtype.
    ValueError: if an argument has the wrong rank, an empty axis, a size that disagrees
      with an earlier argument, or is an index outside its axis and not traced.
  """
  known: dict[str, tuple[Any, str]] = {}  # Axis → its size, and the first argument.
  for name, (value, spec) in arguments.items():
    label = f"{function}: {name}"
    kind, _, shapes = spec.partition(" ")
    _check_dtype(label, value, kind)
    shape = list(np.shape(value))
    axes = _matching_axes(shapes, len(shape))
    if axes is None:
      raise ValueError(
        f"{label} has shape {shape}, but {shapes} is needed; apply jax.vmap over "
        "batches."
      )
    if math.prod(shape) == 0:
      raise ValueError(
        f"{label} has shape {shape}, which is empty; every axis needs at least one "
        "entry."
      )
    for axis, size in _sizes(axes, shape):
      expected, first = known.setdefault(axis, (size, name))
      if size != expected:
        raise ValueError(
          f"{label} has shape {shape}, {shapes}, but {first} has {axis} = {expected}; "
          "give both the same size."
        )
  for name, (value, spec) in arguments.items():
    indexed = _INDEXED_AXES.get(spec.partition(" ")[0], "")
    if indexed in known:
      check_in_range(function, name, value, 0, known[indexed][0] - 1)


def check_in_range(
  function: str, name: str, value: Any, low: float, high: float = math.inf
) -> None:
  """Refuses a number outside [low, high], unless it is traced."""
  _refuse(
    lambda number: not low <= number <= high,
    value,
    f"{function}: {name} is {{}}; it must be in [{low}, {high}].",
  )


def check_positive(function: str, name: str, value: Any) -> None:
  """Refuses a number that is not positive, unless it is traced."""
  message = f"{function}: {name} is {{}}; it must be positive."
  _refuse(lambda number: not number > 0, value, message)


def _check_pair(function: str, pair: Any) -> None:
  if not (hasattr(pair, "apply") and hasattr(pair, "apply_inv")):
    name = getattr(pair, "__name__", repr(pair))
    raise TypeError(
      f"{function}: tx_pair is {name}, which has no apply and apply_inv; pass a pair "
      "of functions, such as signed_hyperbolic_pair()."
    )


def _refuse(is_wrong: Callable[[Any], bool], values: Any, message: str) -> None:
  """Raises a ValueError with the first wrong number; a traced value is unknown."""
  if not isinstance(values, jax.core.Tracer):
    for value in np.ravel(values):
      if is_wrong(value):
        raise ValueError(message.format(value))


def _check_dtype(label: str, value: Any, kind: str) -> None:
  if not (hasattr(value, "dtype") or isinstance(value, bool | int | float)):
    raise TypeError(
      f"{label} is a {type(value).__name__}; pass an array (jnp.asarray makes one)."
    )
  # A Python number has no fixed dtype: 1 is accepted as a float.
  is_whole = isinstance(value, int) and not isinstance(value, bool)
  accepted, advice = _KINDS["number" if kind == "float" and is_whole else kind]
  dtype = jnp.result_type(value)
  if not any(jnp.issubdtype(dtype, other) for other in accepted):
    raise TypeError(
      f"{label} has dtype {dtype}, but {kind} is needed: convert it to {advice}."
    )


def _matching_axes(shapes: str, rank: int) -> list[str] | None:
  """The axes of the first shape of `[] or [T]` that has this rank."""
  for shape_text in shapes.split(" or "):
    axes = shape_text.strip("[] ").replace(",", " ").split()
    if rank == len(axes) or ("..." in axes and rank >= len(axes) - 1):
      return axes
  return None


def _sizes(axes: list[str], shape: list[Any]) -> list[tuple[str, Any]]:
  """Pairs each axis with its size, and `...` with its sizes."""
  if "..." in axes:
    before = axes.index("...")
    after = len(shape) - (len(axes) - before - 1)
    shape = [*shape[:before], tuple(shape[before:after]), *shape[after:]]
  return list(zip(axes, shape, strict=True))
