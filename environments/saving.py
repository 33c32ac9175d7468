"""The state of an environment in a checkpoint: complete for those written in JAX.

An environment written in JAX consists of a state and a key, and resumes bit for bit,
also within an episode. For bsuite's, the counters of their scores and the random number
generators are saved; for all others, the attributes named by their attribute `KEPT`, in
JSON's types. Both restart with a new episode.
"""

import json
from collections.abc import Mapping
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import jax_adapter, standard

_SCALARS = (bool, int, float, np.bool_, np.integer, np.floating)
# Attributes of bsuite's CSV wrapper that belong to an interrupted episode.
_OF_EPISODE = ("_episode_len", "_episode_return")


def is_exact(environment: dm_env.Environment) -> bool:
  """Whether the environment can resume within an episode."""
  return isinstance(standard.unwrap(environment), jax_adapter.JaxEnvironment)


def is_exact_between_episodes(environment: dm_env.Environment) -> bool:
  """Whether the environment can resume between two episodes, but not within one."""
  return not is_exact(environment) and bool(_layers(environment))


def is_saved(environment: dm_env.Environment) -> bool:
  """Whether its random numbers resume with it."""
  return is_exact(environment) or is_exact_between_episodes(environment)


def reseed(environment: dm_env.Environment, seed: int) -> None:
  """Seeds the next reset, if the environment is gymnasium's."""
  set_seed = getattr(standard.unwrap(environment), "seed_next_reset", None)
  if set_seed is not None:
    set_seed(seed)


def save(environment: dm_env.Environment) -> tuple[Any, dict[str, Any]]:
  """Its state: (a pytree of arrays, values in JSON's types)."""
  raw = standard.unwrap(environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    arrays, counts = raw.save()
    return arrays, {"adapter": counts, "layers": [_scalars(environment)]}
  kept = _kept(environment)
  layers = [_of_layer(layer) for layer in _layers(environment)]
  return (), {"layers": layers, "kept": kept}


def check(environment: dm_env.Environment) -> None:
  """Refuses an environment whose state no checkpoint can contain.

  Raises:
    TypeError: if its state has typed keys, or what it keeps has no type of JSON.
  """
  raw = standard.unwrap(environment)
  name = type(raw).__name__
  if isinstance(raw, jax_adapter.JaxEnvironment):
    state = raw.shapes({"begun": True})
    if any(
      jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(state)
    ):
      raise TypeError(
        f"the state of {type(raw.pure[0]).__name__} contains a typed key, which no "
        "checkpoint can contain; keep its jax.random.key_data."
      )
    return
  for attribute, value in _kept(environment).items():
    try:
      json.dumps(value)
    except (TypeError, ValueError) as error:
      raise TypeError(
        f"{name}.KEPT names {attribute!r}, which no checkpoint can contain ({error}); "
        "it may consist of numbers, strings, lists and dicts."
      ) from error


def shapes(environment: dm_env.Environment, counts: Mapping[str, Any]) -> Any:
  """The shapes of the arrays that `save` returned with `counts`."""
  raw = standard.unwrap(environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    return raw.shapes(counts["adapter"])
  return ()


def restore(
  environment: dm_env.Environment, arrays: Any, counts: Mapping[str, Any]
) -> None:
  """Resumes from the result of `save`; unless `is_exact`, a reset must follow.

  Args:
    environment: made in the same way as the saved one.
    arrays: the pytree.
    counts: the other values.
  """
  raw = standard.unwrap(environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    raw.restore(arrays, counts["adapter"])
    vars(environment).update(counts["layers"][0] if raw is not environment else {})
    return
  vars(raw).update(counts["kept"])
  for layer, saved in zip(_layers(environment), counts["layers"], strict=True):
    _restore_layer(layer, saved)


def carry_over(old: dm_env.Environment, new: dm_env.Environment) -> None:
  """Copies the attributes in `KEPT` from a crashed environment to its replacement."""
  vars(standard.unwrap(new)).update(_kept(old))


def _kept(environment: dm_env.Environment) -> dict[str, Any]:
  raw = standard.unwrap(environment)
  return {name: vars(raw)[name] for name in getattr(raw, "KEPT", ())}


def _layers(environment: dm_env.Environment) -> list[Any]:
  """bsuite's environment within its wrappers; nothing of the others."""
  layers: list[Any] = [standard.unwrap(environment)]
  if not any(type(layers[0]).__module__.startswith(m) for m in ("bsuite", "explorax")):
    return []
  while "_env" in vars(layers[-1]):
    layers.append(vars(layers[-1])["_env"])
  return layers if hasattr(layers[-1], "bsuite_info") else []


def _scalars(layer: Any) -> dict[str, Any]:
  """The attributes that are single numbers."""
  kept = {k: v for k, v in vars(layer).items() if isinstance(v, _SCALARS)}
  return {k: v.item() if isinstance(v, np.generic) else v for k, v in kept.items()}


def _of_layer(layer: Any) -> dict[str, Any]:
  saved: dict[str, Any] = {"scalars": _scalars(layer)}
  generator = vars(layer).get("_rng")
  if isinstance(generator, np.random.RandomState):
    state: Any = generator.get_state()
    name, keys, position, has_gauss, cached = state
    saved["rng"] = [name, keys.tolist(), int(position), int(has_gauss), float(cached)]
  rows = getattr(vars(layer).get("_logger"), "_data", None)
  if rows is not None:
    saved["rows"] = [_plain(row) for row in rows]
  return saved


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
  return {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()}


def _restore_layer(layer: Any, saved: Mapping[str, Any]) -> None:
  vars(layer).update(saved["scalars"])
  if "rng" in saved:
    name, keys, *rest = saved["rng"]
    vars(layer)["_rng"].set_state((name, np.array(keys, np.uint32), *rest))
  if "rows" in saved:
    # Each new row rewrites the whole file.
    vars(layer)["_logger"]._data = [dict(row) for row in saved["rows"]]
    vars(layer).update(dict.fromkeys(_OF_EPISODE, 0))
