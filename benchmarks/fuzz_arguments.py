"""Fuzz cases: bad arguments of the losses and of exploration (see `fuzz`)."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fuzz
import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration, losses

_T, _A, _K = 5, 3, 4
_KEY = jax.random.PRNGKey(0)
# Good values of the losses' arguments by name, for a sequence and for a transition.
_STREAM: dict[str, Any] = {
  "q_tm1": np.ones((_T, _A), np.float32),
  "q_t": np.ones((_T, _A), np.float32),
  "a_tm1": np.zeros(_T, np.int32),
  "a_t": np.zeros(_T, np.int32),
  "r_t": np.ones(_T, np.float32),
  "discount_t": np.ones(_T, np.float32),
  "pi_t": np.full((_T, _A), 1 / 3, np.float32),
  "mu_t": np.full(_T, 1 / 3, np.float32),
  "lambda_": 0.9,
}
_TRANSITION: dict[str, Any] = {
  "q_tm1": np.ones(_A, np.float32),
  "a_tm1": np.int32(1),
  "r_t": 1.0,
  "discount_t": 0.9,
  "q_t_value": np.ones(_A, np.float32),
  "q_t_selector": np.ones(_A, np.float32),
  "q_atoms_tm1": np.arange(6, dtype=np.float32),
  "q_logits_tm1": np.zeros((_A, 6), np.float32),
  "q_atoms_t": np.arange(6, dtype=np.float32),
  "q_logits_t": np.zeros((_A, 6), np.float32),
}
_GOOD = {
  losses.retrace: _STREAM,
  losses.watkins_q_lambda: _STREAM,
  losses.importance_sampling: _STREAM,
  losses.q_learning: _TRANSITION,
  losses.double_q: _TRANSITION,
  losses.categorical_double_q: _TRANSITION,
  losses.rnd_error: {"prediction": np.ones((2, 3)), "target": np.ones((2, 3))},
  losses.inverse_dynamics: {"logits": np.ones((2, 3)), "action": np.array([0, 2])},
  losses.tdu_bonus: {"td": np.ones((_K, 2))},
  losses.sequence_priority: {"td": np.ones(_T), "mask": np.ones(_T), "eta": 0.9},
  exploration.epsilon_greedy: {"key": _KEY, "q": np.ones(_A), "epsilon": 0.1},
  exploration.boltzmann: {"key": _KEY, "q": np.ones(_A), "temperature": 1.0},
  exploration.ucb: {"q": np.ones((_K, _A)), "scale": 0.1},
  exploration.majority_vote: {"key": _KEY, "q": np.ones((_K, _A))},
  exploration.ez_greedy: {
    "key": _KEY,
    "q": np.ones(_A),
    "epsilon": 0.1,
    "state": exploration.init_ez_state(),
  },
  exploration.thompson: {
    "key": _KEY,
    "q": np.ones((_K, _A)),
    "state": exploration.init_thompson(_KEY, _K),
  },
  exploration.count_bonus: {
    "counts": np.ones((5, _A), np.int32),
    "state": np.int32(1),
    "action": np.int32(1),
  },
  exploration.observe_picture: {
    "model": exploration.init_density(4, 3),
    "picture": np.ones((2, 2), np.int32),
  },
  exploration.episodic_novelty: {
    "state": exploration.init_episodic_memory(5, 2),
    "embedding": np.ones(2, np.float32),
  },
  exploration.update_regression: {
    "regression": exploration.init_regression(2),
    "features": np.ones((5, 2)),
    "targets": np.ones(5),
    "decay": 0.5,
  },
}
# Bad values for arguments with these names; `_bad` adds values bad for every array.
_BAD: dict[str, tuple[Any, ...]] = {
  "epsilon": (-0.1, 1.5, np.nan, np.inf, jnp.float32(2.0)),
  "temperature": (0.0, -1.0, np.nan),
  "eta": (-0.1, 1.5, np.nan),
  "decay": (-0.1, 1.5, np.nan),
  "a_tm1": (-1, 99),
  "action": (-1, 99),
  "picture": (np.full((2, 2), 3), np.full((2, 2), -1), np.ones((3, 3), np.int32)),
}
# (constructor, bad arguments, regular expression that the error message must match)
_CONSTRUCTORS: tuple[tuple[Callable[..., Any], Mapping[str, Any], str], ...] = (
  (exploration.EpsilonGreedy, {"epsilon": 1.5}, "epsilon"),
  (exploration.EpsilonGreedy, {"epsilon": np.nan}, "epsilon"),
  (exploration.EzGreedy, {"epsilon": -1.0}, "epsilon"),
  (exploration.Boltzmann, {"temperature": 0.0}, "temperature"),
  (exploration.Ucb, {"scale": -1.0}, "scale"),
  (exploration.Ucb, {"ddof": 2}, "ddof"),
  (exploration.Thompson, {"period_steps": 0}, "period_steps"),
  (exploration.Linear, {"start": 1.0, "end": 0.0, "steps": 0}, "steps"),
  (exploration.Piecewise, {"values": (1.0,), "steps": ()}, "steps"),
  (exploration.ZetaDuration, {"cap": 0}, "cap"),
  (exploration.ExponentialDuration, {"decay": 1.0}, "decay"),
  (exploration.init_counts, {"num_states": 0, "num_actions": 2}, "0 states"),
  (exploration.init_density, {"num_pixels": 4, "num_levels": 1}, "1 levels"),
  (exploration.init_episodic_memory, {"capacity": 0, "dim": 2}, "0 embeddings"),
  (exploration.init_regression, {"num_features": 0}, "num_features"),
  (exploration.init_ucb1, {"num_arms": 0}, "num_arms"),
  (exploration.init_thompson, {"key": _KEY, "num_members": 0}, "num_members"),
  (exploration.mixture_betas, {"n": 0, "beta": 0.3}, "0 policies"),
  (exploration.mixture_betas, {"n": 2, "beta": -1.0}, "beta"),
  (
    exploration.mixture_discounts,
    {"n": 2, "gamma_max": 0.9, "gamma_min": 1.0},
    "gamma_min",
  ),
)


def _arguments(function: Callable[..., Any]) -> dict[str, Any]:
  names = inspect.signature(function).parameters
  return {name: value for name, value in _GOOD[function].items() if name in names}


def _bad(name: str, good: Any) -> Iterator[Any]:
  """Bad values of an argument: by its name, and wrong shapes and dtypes of arrays."""
  yield from _BAD.get(name, ())
  if isinstance(good, np.ndarray | np.generic | float):
    array = np.asarray(good)
    yield np.stack([array, array])[None, None]
    yield array.astype(np.complex64)
    yield "words"
    if array.ndim:
      yield array[:0]
      yield array.tolist()


def _in_programs() -> Iterator[fuzz.Case]:
  """Bad values in compiled programs, which cannot raise: the result must be NaN."""
  for function in (losses.q_learning, losses.double_q, losses.categorical_double_q):
    for action in (-1, 99):
      yield _case(function, {"a_tm1": jnp.int32(action)}, "NaN", jax.jit)
  for name, value in (("mu_t", np.full(_T, np.nan)), ("a_tm1", np.full(_T, 99))):
    yield _case(losses.retrace, {name: value}, "NaN", jax.jit)
  for place in ({"state": -1}, {"state": 5}, {"action": 3}):
    yield _case(exploration.count_bonus, place, "NaN", jax.jit)


def _case(
  function: Callable[..., Any],
  changes: Mapping[str, Any],
  names: str,
  transform: Callable[..., Any] = lambda function: function,
) -> fuzz.Case:
  arguments = {**_arguments(function), **changes} if function in _GOOD else changes
  group = function.__module__.split(".")[1]
  said = ", ".join(f"{x}={y!r:.30}" for x, y in changes.items())
  name = f"{function.__name__}({said})" + " compiled" * (transform is jax.jit)
  attempt = functools.partial(fuzz.call, lambda: transform(function)(**arguments))
  return fuzz.Case(f"arguments, {group}", name, attempt, names)


def cases() -> Iterator[fuzz.Case]:
  """All cases of this module."""
  for function in _GOOD:
    for name, good in _arguments(function).items():
      for bad in _bad(name, good):
        yield _case(function, {name: bad}, rf"\b{name}\b")
  for function, arguments, names in _CONSTRUCTORS:
    yield _case(function, arguments, names)
  yield from _in_programs()
