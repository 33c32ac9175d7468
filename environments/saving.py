"""What a checkpoint holds of an environment: all of one written in JAX, else counters.

An environment written in JAX is a state and a key, and goes on to the bit, in
mid-episode too. bsuite's keep counters for their scores and generators of random
numbers, which are kept; their episodes begin anew, as those of all others do. Of those,
what their attribute `KEPT` names is kept, which JSON can hold.
"""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from explorax.environments import jax_adapter, standard

_SCALARS = (bool, int, float, np.bool_, np.integer, np.floating)
# Of bsuite's wrapper that writes its CSV: what an episode that is broken off leaves.
_OF_EPISODE = ("_episode_len", "_episode_return")


def is_exact(environment: dm_env.Environment) -> bool:
  """Whether the environment can go on in mid-episode from what `save` returns."""
  return isinstance(standard.unwrap(environment), jax_adapter.JaxEnvironment)


def save(environment: dm_env.Environment) -> tuple[Any, dict[str, Any]]:
  """What there is to keep of it: (a pytree of arrays, what JSON can hold)."""
  raw = standard.unwrap(environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    arrays, counts = raw.save()
    return arrays, {"adapter": counts, "layers": [_scalars(environment)]}
  kept = _kept(environment)
  layers = [_of_layer(layer) for layer in _layers(environment)]
  return (), {"layers": layers, "kept": kept}


def shapes(environment: dm_env.Environment, counts: Mapping[str, Any]) -> Any:
  """The shapes of the arrays that `save` returned along with `counts`."""
  raw = standard.unwrap(environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    return raw.shapes(counts["adapter"])
  return ()


def restore(
  environment: dm_env.Environment, arrays: Any, counts: Mapping[str, Any]
) -> None:
  """Goes on from what `save` returned; unless `is_exact`, with a reset.

  Args:
    environment: made as that one was.
    arrays: the pytree.
    counts: the rest.
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
  """Has an environment that takes a crashed one's place keep what it had to keep."""
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
    # Its file is written anew as a whole with each row.
    vars(layer)["_logger"]._data = [dict(row) for row in saved["rows"]]
    vars(layer).update(dict.fromkeys(_OF_EPISODE, 0))
