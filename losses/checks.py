"""One check of shapes and dtypes for every loss, made while the loss is traced.

What an argument must be is written as its docstring writes it: `float [T, A]`,
`number [] or [T]`, `int [...]`. A letter is one size throughout a call, `...` is any
number of axes, the same ones throughout, and no axis is empty. What is `int` is an
action, in [0, A) where there is an axis A.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# What each word admits, and what to do about anything else.
_KINDS: dict[str, tuple[tuple[Any, ...], str]] = {
  "float": ((jnp.floating,), "convert it to float32"),
  "int": ((jnp.integer,), "convert it to int32"),
  "number": ((jnp.floating, jnp.integer), "convert it to float32"),
  "mask": ((jnp.floating, jnp.integer, jnp.bool_), "convert it to float32 or bool"),
}


def _words(shape: tuple[int, ...]) -> str:
  return f"[{', '.join(map(str, shape))}]"


def _check_dtype(label: str, value: Any, kind: str) -> None:
  if not (hasattr(value, "dtype") or isinstance(value, bool | int | float)):
    raise TypeError(
      f"{label} is a {type(value).__name__}; pass an array (jnp.asarray makes one)."
    )
  # A Python number is of no one dtype: 1 will do where a float is asked for.
  is_whole = isinstance(value, int) and not isinstance(value, bool)
  admitted, advice = _KINDS["number" if kind == "float" and is_whole else kind]
  dtype = jnp.result_type(value)
  if not any(jnp.issubdtype(dtype, other) for other in admitted):
    raise TypeError(f"{label} is of dtype {dtype} where {kind} is wanted: {advice}.")


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
  """Refuses arguments of the wrong dtype, rank or size, in one sentence.

  Args:
    function: the name of the function called.
    **arguments: name → (value, what it must be), as `(q_t, "float [T, A]")`.

  Raises:
    TypeError: if one is no array, or of the wrong dtype.
    ValueError: if one has the wrong rank, an empty axis, a size that disagrees with an
      argument before it, or is an action outside [0, A) and no tracer.
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
        f"{label} is of shape {_words(shape)} where {wanted} is wanted: losses take "
        "a single stream; vmap over batches and members."
      )
    if math.prod(shape) == 0:
      raise ValueError(
        f"{label} is of shape {_words(shape)}, which holds nothing; every axis needs "
        "at least one entry."
      )
    for axis, size in _split(fitting[0], shape):
      expected, first = known.setdefault(axis, (size, name))
      if size != expected:
        raise ValueError(
          f"{label} is of shape {_words(shape)}, {wanted}, but {first} has "
          f"{axis} = {expected}; give both the same."
        )
  for name, (value, spec) in arguments.items():
    if spec.startswith("int") and "A" in known:
      _check_actions(f"{function}: {name}", value, known["A"][0])


def _check_actions(label: str, actions: Any, num_actions: int) -> None:
  """Refuses actions that can be looked at, as those of a program cannot."""
  if isinstance(actions, jax.core.Tracer):
    return
  outside = [each for each in np.ravel(actions) if not 0 <= each < num_actions]
  if outside:
    raise ValueError(
      f"{label} has {outside[0]}; with {num_actions} actions they are 0 to "
      f"{num_actions - 1}."
    )


def check_in_range(
  function: str, name: str, value: Any, low: float, high: float
) -> None:
  """Refuses a Python number outside [low, high]; arrays may be tracers, and pass."""
  if isinstance(value, int | float) and not low <= value <= high:
    raise ValueError(f"{function}: {name} is {value}; it must be in [{low}, {high}].")
