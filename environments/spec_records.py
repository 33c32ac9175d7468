"""Specs of environments in a run's config.json, and in words."""

from typing import Any

import dm_env
import numpy as np

from explorax.environments import specs

# Class of a recorded spec of observations, by its name.
_RECORDED = {
  cls.__name__: cls
  for cls in (
    *(dm_env.specs.Array, specs.OneHotArray, specs.StackedFrames, specs.ImageWithState),
    *(specs.Image, specs.JoinedArrays, specs.CategoricalImage),
  )
}


def _is_discrete(part: specs.Part) -> bool:
  return isinstance(part.spec, dm_env.specs.DiscreteArray)


def to_record(spec: specs.EnvironmentSpec) -> dict[str, Any]:
  """A spec in JSON's types, for `from_record`."""
  observations = spec.observations
  arguments = observations._get_constructor_kwargs()
  if "dtype" in arguments:
    arguments["dtype"] = np.dtype(arguments["dtype"]).name
  if isinstance(observations, specs.JoinedArrays):
    # The number of values and the first one, or a shape.
    arguments["parts"] = [
      [list(part.path), part.size, int(part.spec.minimum)]
      if _is_discrete(part)
      else [list(part.path), list(part.spec.shape)]
      for part in observations.parts
    ]
  return {
    "observations": {
      "class": type(observations).__name__,
      **{k: list(v) if isinstance(v, tuple) else v for k, v in arguments.items()},
    },
    "num_actions": int(spec.actions.num_values),
  }


def from_record(record: Any) -> specs.EnvironmentSpec:
  """The inverse of `to_record`.

  Raises:
    ValueError: if the record is none of `to_record`'s.
  """
  try:
    arguments = dict(record["observations"])
    cls = _RECORDED[arguments.pop("class")]
    if cls is specs.JoinedArrays:
      arguments["parts"] = [
        specs.Part(
          tuple(path),
          specs.DiscreteRange(size, *start or [0])
          if isinstance(size, int)
          else dm_env.specs.Array(tuple(size), np.float32),
        )
        for path, size, *start in arguments["parts"]
      ]
    arguments = {
      k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()
    }
    return specs.EnvironmentSpec(
      cls(**arguments),
      dm_env.specs.DiscreteArray(record["num_actions"], np.int32, "action"),
    )
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise ValueError(
      f"the spec {record!r:.60} of an environment cannot be read ({error})."
    ) from error


def describe(spec: specs.EnvironmentSpec) -> str:
  """`observations of uint8 (84, 84, 4) and 6 actions`."""
  observations = spec.observations
  kind = f"{np.dtype(observations.dtype).name} {tuple(observations.shape)}"
  if specs.num_frames(observations) > 1:
    kind += f" ({specs.num_frames(observations)} frames)"
  if isinstance(observations, specs.OneHotArray):
    kind = f"one of {int(np.prod(observations.shape))} values"
  return f"observations of {kind} and {spec.actions.num_values} actions"
