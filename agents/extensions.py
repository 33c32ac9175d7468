"""Checks the methods of users' rules, targets and bonuses before a run begins.

Each is traced once, without computing; our own classes are not checked.
"""

from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, losses
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.targets import types as target_types
from explorax.environments import errors
from explorax.exploration import rules

_NUM = 3  # Transitions.
_FLOAT, _INT = jnp.float32, jnp.int32


def check_rules(rule: Any, num_members: int, num_actions: int) -> None:
  """Refuses a rule, or one within it, whose methods return something else.

  Raises:
    TypeError: a sentence that names the method, and what it should return.
  """
  for each in _users_rules(rule):
    if not isinstance(each, exploration.Rule):
      continue
    key, steps = _key(), _array(dtype=_INT)
    q = _array(num_members, num_actions)

    def init(key: jax.Array, each: Any = each) -> Any:
      return each.init(key, num_members, num_actions)

    state = _call(each, "init", "a pytree of arrays", init, key)
    args = (key, q, state, steps)
    methods = {"select": ("(action int32 [], its probability float32 [], state)", 3)}
    if isinstance(each, rules.Policy):
      methods = {"probs": (f"(probabilities float32 [{num_actions}], state)", 2)}
    if isinstance(each, rules.Score):
      methods = {"score": (f"(scores float32 [{num_actions}], state)", 2)}
    for method, (needed, length) in methods.items():
      result = _call(each, method, needed, getattr(each, method), *args)
      is_tuple = isinstance(result, tuple) and len(result) == length
      shape = () if method == "select" else (num_actions,)
      if not is_tuple or _shapes(result[0]) != shape:
        raise _wrong(each, method, result, needed)
      if _shapes(result[-1]) != _shapes(state):
        raise _wrong(each, method, result, f"the state as init does, {_text(state)}")


def check_target(
  target: target_types.Target, num_actions: int, tx_pair: losses.TxPair
) -> None:
  """The same for a target of values."""
  if _is_ours(target) or target.atoms is not None:
    return
  q, numbers = _array(_NUM, num_actions), _array(_NUM)
  actions = _array(_NUM, dtype=_INT)
  epsilon = _array() if target.follows_exploration else None
  mu_t = numbers if target.is_multi_step else None
  stream = target_types.Stream(
    actions, actions, numbers, numbers, mu_t, numbers, epsilon
  )
  needed = "TD errors, float32 [T] of T transitions"

  def td_errors(
    predictions: target_types.Predictions, stream: target_types.Stream
  ) -> Any:
    return target.td_errors(predictions, stream, tx_pair)

  predictions = target_types.Predictions(q, q, q)
  result = _call(target, "td_errors", needed, td_errors, predictions, stream)
  if _shapes(result) != (_NUM,):
    raise _wrong(target, "td_errors", result, needed)


def check_bonus(
  bonus: bonus_types.Bonus,
  built: Any,
  spec: dm_env.specs.Array,
  num_actions: int,
  num_members: int,
) -> None:
  """The same for what a bonus's `build` returned."""
  if _is_ours(bonus):
    return
  if not isinstance(built, bonus_types.IntrinsicReward) or not (
    built.acting or built.learning
  ):
    raise _wrong(bonus, "build", built, "an IntrinsicReward with one half or both")
  if built.learning is None:
    return
  numbers, seen = _array(_NUM), _array(_NUM, *spec.shape, dtype=spec.dtype)
  q = _array(num_members, _NUM, num_actions)
  inputs = bonus_types.Inputs(
    td=_array(num_members, _NUM),
    a_tm1=_array(_NUM, dtype=_INT),
    q_tm1=q,
    q_t=q,
    observation_tm1=seen,
    observation_t=seen,
    stored=numbers,
    mask=numbers,
    num_later=numbers,
    q=q,
    observation=seen,
  )
  state = _call(bonus, "init", "a pytree of arrays", built.learning.init, _key())
  needed = "(r_int float32 [N] of N transitions, state)"
  result = _call(bonus, "compute", needed, built.learning.compute, state, inputs)
  is_pair = isinstance(result, tuple) and len(result) == 2
  if not is_pair or _shapes(result[0]) != (_NUM,):
    raise _wrong(bonus, "compute", result, needed)


def _users_rules(rule: Any) -> Iterator[Any]:
  """The rules of users, from the innermost one outwards."""
  inner = getattr(rule, "of", None)
  if inner is not None:
    yield from _users_rules(inner)
  if rule is not None and not _is_ours(rule):
    yield rule


def _is_ours(value: Any) -> bool:
  return type(value).__module__.partition(".")[0] == "explorax"


def _call(
  owner: Any, method: str, needed: str, function: Callable[..., Any], *args: Any
) -> Any:
  """The shapes of what a method returns."""
  result: list[Any] = []

  def traced(*args: Any) -> Any:
    result.append(function(*args))
    return jax.tree.map(jnp.asarray, result[0])

  try:
    shapes = jax.eval_shape(traced, *args)
  except Exception as error:
    if result:  # It returned something that is no array.
      raise _wrong(owner, method, result[0], needed) from error
    said = " ".join(f"{type(error).__name__}: {error}".split())
    raise TypeError(
      f"{_name(owner)}.{method} raised {said} ({errors.place(error)}); it must return "
      f"{needed}."
    ) from error
  return shapes


def _wrong(owner: Any, method: str, result: Any, needed: str) -> TypeError:
  return TypeError(
    f"{_name(owner)}.{method} returned {_text(result)}; it must return {needed}."
  )


def _name(owner: Any) -> str:
  return f"{type(owner).__module__}:{type(owner).__qualname__}"


def _text(result: Any) -> str:
  """`(float32[3], ())`."""

  def one(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if hasattr(x, "shape") else repr(x)

  return str(jax.tree.map(one, result)).replace("'", "")[:200]


def _shapes(tree: Any) -> Any:
  return jax.tree.map(lambda x: tuple(x.shape), tree)


def _key() -> Any:
  return jax.eval_shape(jax.random.PRNGKey, 0)


def _array(*shape: int, dtype: Any = _FLOAT) -> Any:
  return jax.ShapeDtypeStruct(shape, dtype)
