"""Whether a run's arrays fit into the device's memory, told before it starts."""

import os
import pathlib
from typing import Any

import jax

_GIB = 2**30
# Of a program and its compilation, whatever its size (measured on a CPU: 0.6 GiB).
_FIXED = 0.6 * _GIB
# What a container may use and uses, of Linux' control groups: version 2, version 1.
_GROUPS = (
  ("memory.max", "memory.current", "memory.stat", "inactive_file"),
  (
    "memory/memory.limit_in_bytes",
    "memory/memory.usage_in_bytes",
    "memory/memory.stat",
    "total_inactive_file",
  ),
)


def estimate(state: Any, learner: Any) -> int:
  """Bytes that a run of one seed needs at its peak, beside what is fixed.

  All its arrays once (replay is updated in place), and the learner's once more for
  gradients and new moments. TDU on Deep Sea (N = 50) was estimated at 90 MiB a seed,
  and took 83 (32 seeds against 8). Activations are left out: large images in large
  batches take more.

  Args:
    state: the shapes of all that the run keeps (`jax.eval_shape`).
    learner: of these, the learner's.
  """
  return _num_bytes(state) + _num_bytes(learner)


def check(bytes_per_seed: int, num_seeds: int) -> None:
  """Refuses what will not fit.

  Args:
    bytes_per_seed: as `estimate` has it.
    num_seeds: trained at the same time.

  Raises:
    ValueError: with what is needed, what is free and what to do.
  """
  free = available()
  needed = bytes_per_seed * num_seeds + _FIXED
  if needed <= free:
    return
  fitting = max(0, int((free - _FIXED) // bytes_per_seed))
  if not fitting:
    raise ValueError(
      f"a seed needs about {_gib(bytes_per_seed + _FIXED)} of memory and {_gib(free)} "
      f"are free on {_device_name()}; use a smaller replay or smaller networks."
    )
  raise ValueError(
    f"{num_seeds} seeds at once need about {_gib(needed)} of memory and {_gib(free)} "
    f"are free on {_device_name()}; use at most {fitting} seeds, or a smaller replay."
  )


def available() -> float:
  """Bytes free on the device where JAX computes; infinite where nothing tells."""
  device = jax.devices()[0]
  if device.platform != "cpu":
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
      return float("inf")
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
  return min(_of_machine(), of_container())


def of_container(root: pathlib.Path = pathlib.Path("/sys/fs/cgroup")) -> float:
  """Bytes that the container of this process may still use; infinite without one.

  Args:
    root: where the control groups are mounted.
  """
  for limit, usage, stat, cache in _GROUPS:
    try:
      most = int((root / limit).read_text())
      used = int((root / usage).read_text())
      lines = (root / stat).read_text().splitlines()
      # Pages of files that are given back when others need memory.
      spare = int(dict(line.split() for line in lines).get(cache, 0))
    except (OSError, ValueError):  # Not of this version, or "max".
      continue
    return max(0, most - used + spare)
  return float("inf")


def _of_machine() -> float:
  try:
    with open("/proc/meminfo", encoding="ascii") as file:
      lines = dict(line.split(":", 1) for line in file)
    return int(lines["MemAvailable"].split()[0]) * 1024
  except (OSError, KeyError, ValueError):  # Not Linux.
    try:
      return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
      return float("inf")


def _num_bytes(tree: Any) -> int:
  return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _device_name() -> str:
  device = jax.devices()[0]
  return "this machine" if device.platform == "cpu" else device.device_kind


def _gib(size: float) -> str:
  return f"{size / _GIB:.1f} GiB"
