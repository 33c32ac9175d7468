"""Describes an agent's network, and what it sees of an environment, in one line."""

import math

import dm_env
import numpy as np

from explorax import networks
from explorax.agents import types
from explorax.environments import specs


def describe(agent: types.Agent) -> str:
  """`Network: convolutions (dqn) on images of 84×84 with 4 channels; 6 actions`."""
  given, encoded = agent.spec.observations, agent.encoding.spec
  parts = [_first_layers(agent.config, given, encoded)]
  if size := getattr(agent.config, "lstm_size", None):
    parts.append(f"an LSTM of {size}")
  actions = agent.spec.actions.num_values
  return f"Network: {', '.join(parts)}; {actions} action{'s' * (actions != 1)}"


def _first_layers(
  config: object, given: dm_env.specs.Array, encoded: dm_env.specs.Array
) -> str:
  seen = networks.visible_spec(encoded)
  torso = networks.resolve_torso(getattr(config, "torso", "auto"), encoded)
  turned = ""
  if isinstance(given, specs.Image):
    turned = f" (given as {given.shape}: {_axes(given)})"
  if isinstance(given, specs.JoinedArrays):
    sizes = ", ".join(f"{part}: {part.size}" for part in given.parts)
    turned = f" (joined from {sizes})"
  if isinstance(given, specs.CategoricalImage):
    first = "a perceptron" if torso == "mlp" else f"convolutions ({torso})"
    return f"{first} on {_cells(given)}"
  if torso != "mlp":
    height, width, channels = seen.shape
    s = "s" * (channels != 1)
    return (
      f"convolutions ({torso}) on images of {height}×{width} with {channels} channel{s}"
      f"{turned}"
    )
  if isinstance(encoded, specs.IndexArray):
    return f"a perceptron on a one-hot array of shape {encoded.of.shape}"
  number = math.prod(seen.shape)
  if not turned and len(seen.shape) > 1:
    kind = "uint8" if seen.dtype == np.uint8 else "floats"
    turned = f" ({kind} of shape {seen.shape})"
  return f"a perceptron on {number:,} number{'s' * (number != 1)}{turned}"


def _cells(spec: specs.CategoricalImage) -> str:
  height, width, _ = spec.shape
  channels = ", ".join(f"{label} of {number}" for label, number in spec.channels)
  left_out = f", without the {' and the '.join(spec.left_out)}" * bool(spec.left_out)
  return f"{height}×{width} cells, one-hot ({channels}){left_out}"


def _axes(spec: specs.Image) -> str:
  names = {"f": "frames", "c": "channels", "h": "height", "w": "width"}
  if spec.layout == "flat":
    return "no image"
  return ", ".join(names[axis] for axis in spec.layout)
