"""Checks the shapes and dtypes of a function's arguments while it is traced.

A specification is written as in docstrings: `float [T, A]`, `number [] or [T]`,
`int [...]`. A letter is the same size in all arguments of a call, `...` is any number
of axes, the same in all arguments, and no axis may be empty. An `int` is an action, in
[0, A) if there is an axis A; `state` and `level` are indices of the axes S and L.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# The dtypes that each word accepts, and the advice for others.
_KINDS: dict[str, tuple[tuple[Any, ...], str]] = {
  "float": ((jnp.floating,), "convert it to float32"),
  "int": ((jnp.integer,), "convert it to int32"),
  "number": ((jnp.floating, jnp.integer), "convert it to float32"),
  "mask": ((jnp.floating, jnp.integer, jnp.bool_), "convert it to float32 or bool"),
  **dict.fromkeys(("count", "state", "level"), ((jnp.integer,), "convert it to int32")),
}

# For index types: the axis, and the name of its entries.
_INDICES = {"int": ("A", "actions"), "state": ("S", "states"), "level": ("L", "levels")}


def _words(shape: tuple[int, ...]) -> str:
  return f"[{', '.join(map(str, shape))}]"


def _check_dtype(label: str, value: Any, kind: str) -> None:
  if not (hasattr(value, "dtype") or isinstance(value, bool | int | float)):
    raise TypeError(
      f"{label} is a {type(value).__name__}; pass an array (jnp.asarray makes one)."
    )
  # A Python number has no fixed dtype: 1 is accepted as a float.
  is_whole = isinstance(value, int) and not isinstance(value, bool)
  admitted, advice = _KINDS["number" if kind == "float" and is_whole else kind]
  dtype = jnp.result_type(value)
  if not any(jnp.issubdtype(dtype, other) for other in admitted):
    raise TypeError(f"{label} has dtype {dtype}, but {kind} is needed: {advice}.")


def _axes(spec: str) -> tuple[str, ...]:
  return tuple(axis.strip() for axis in spec.strip()[1:-1].split(",") if axis.strip())


def _matches_rank(axes: tuple[str, ...], rank: int) -> bool:
  return rank >= len(axes) - 1 if "..." in axes else rank == len(axes)


def _split(axes: tuple[str, ...], shape: tuple[int, ...]) -> list[tuple[str, Any]]:
  """Pairs each axis of a spec with its size, and `...` with its sizes."""
  if "..." not in axes:
    return list(zip(axes, shape, strict=True))
  before = axes.index("...")
  after = len(shape) - (len(axes) - before - 1)
  return [
    *zip(axes[:before], shape[:before], strict=True),
    ("...", shape[before:after]),
    *zip(axes[before + 1 :], shape[after:], strict=True),
  ]


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
  known: dict[str, tuple[Any, str]] = {}
  for name, (value, spec) in arguments.items():
    label = f"{function}: {name}"
    kind, _, wanted = spec.partition(" ")
    _check_dtype(label, value, kind)
    shape = np.shape(value)
    fitting = [
      axes
      for axes in map(_axes, wanted.split(" or "))
      if _matches_rank(axes, len(shape))
    ]
    if not fitting:
      raise ValueError(
        f"{label} has shape {_words(shape)}, but {wanted} is needed; apply jax.vmap "
        "over batches."
      )
    if math.prod(shape) == 0:
      raise ValueError(
        f"{label} has shape {_words(shape)}, which is empty; every axis needs at least "
        "one entry."
      )
    for axis, size in _split(fitting[0], shape):
      expected, first = known.setdefault(axis, (size, name))
      if size != expected:
        raise ValueError(
          f"{label} has shape {_words(shape)}, {wanted}, but {first} has "
          f"{axis} = {expected}; give both the same size."
        )
  for name, (value, spec) in arguments.items():
    axis, what = _INDICES.get(spec.partition(" ")[0], ("", ""))
    if axis in known:
      _check_indices(f"{function}: {name}", value, known[axis][0], what)


def _check_indices(label: str, indices: Any, size: int, what: str) -> None:
  """Refuses indices outside their axis, unless they are traced."""
  if isinstance(indices, jax.core.Tracer):
    return
  outside = [each for each in np.ravel(indices) if not 0 <= each < size]
  if outside:
    raise ValueError(
      f"{label} has the index {outside[0]}; use 0 to {size - 1} for {size} {what}."
    )


def check_in_range(
  function: str, name: str, value: Any, low: float, high: float = math.inf
) -> None:
  """Refuses a number outside [low, high], unless it is traced."""
  if isinstance(value, jax.core.Tracer):
    return
  outside = [each for each in np.ravel(value) if not low <= each <= high]
  if outside:
    raise ValueError(
      f"{function}: {name} is {outside[0]}; it must be in [{low}, {high}]."
    )


def check_positive(function: str, name: str, value: Any) -> None:
  """Refuses a number that is not positive, unless it is traced."""
  if isinstance(value, jax.core.Tracer):
    return
  outside = [each for each in np.ravel(value) if not each > 0]
  if outside:
    raise ValueError(f"{function}: {name} is {outside[0]}; it must be positive.")
