"""Bootstrapped DQN on Deep Sea: speed and memory, side by side with bsuite's.

The peer is bsuite's own JAX agent, `boot_dqn.default_agent`: twenty members, hidden
layers of 50 and 50 units, batches of 128, one update of every member per step. Ours
is the preset `bootstrapped_dqn` with the same settings, in the `local` runner; a
measurement in which one made more updates than the other is refused.

Each sample is a process of its own, so that no threads, caches or memory are shared,
and the contestants take turns, so that a machine that slows down slows all of them.
"""

import pathlib
import statistics
from typing import Any

import processes

_SAMPLE = pathlib.Path(__file__).resolve().with_name("deep_sea_sample.py")

# N → (bsuite's name, environment steps of a sample, how many times as fast as the
# peer ours means to be).
SIZES = {10: ("bsuite:deep_sea/0", 800, 3.0), 50: ("bsuite:deep_sea/20", 250, 4.0)}
# The peer first: (agent, replay).
CONTESTANTS = (("bsuite", "memory"), ("explorax", "reverb"), ("explorax", "memory"))
PEAK_GOAL_MIB = 1536.0

Row = dict[str, Any]


def sample(what: str, **flags: Any) -> dict[str, Any]:
  """What `deep_sea_sample.py` measured; see `processes.sample`."""
  return processes.sample(_SAMPLE, what, **flags)


def measure_speed(quick: bool = False) -> list[Row]:
  """Environment steps per second, acting and learning, after compilation.

  Args:
    quick: one short sample of each, only to see that everything runs.

  Returns:
    A row for each size and each of our replays: medians, the extremes, the ratio of
    the medians, the median of the ratios within each round, and the samples.
  """
  rows = []
  for size, (env, steps, goal) in SIZES.items():
    rounds = 1 if quick else 3
    samples: dict[tuple[str, str], list[dict[str, Any]]] = {c: [] for c in CONTESTANTS}
    for i in range(rounds):
      # There and back: a machine that slows down steadily favours none.
      for agent, replay in CONTESTANTS if i % 2 == 0 else CONTESTANTS[::-1]:
        samples[agent, replay].append(
          sample(
            "speed",
            agent=agent,
            env=env,
            replay=replay,
            steps=steps // 10 if quick else steps,
          )
        )
    peer, *ours = CONTESTANTS
    rows += [compare(size, goal, c[1], samples[c], samples[peer]) for c in ours]
  return rows


def compare(
  size: int,
  goal: float,
  replay: str,
  ours: list[dict[str, Any]],
  peers: list[dict[str, Any]],
) -> Row:
  """The row of samples that were taken in turn.

  Raises:
    RuntimeError: if the two did not make as many updates for the same steps.
  """
  for our, peer in zip(ours, peers, strict=True):
    for name in ("env_steps", "learner_updates"):
      if our[name] != peer[name]:
        raise RuntimeError(
          f"with the {replay} replay at N = {size}, explorax made {our[name]} "
          f"{name} and bsuite {peer[name]}; the comparison would not be fair."
        )
  speeds = [s["steps_per_second"] for s in ours]
  peer_speeds = [s["steps_per_second"] for s in peers]
  median, peer_median = statistics.median(speeds), statistics.median(peer_speeds)
  return {
    "N": size,
    "replay": replay,
    "explorax_steps_per_s": median,
    "explorax_min": min(speeds),
    "explorax_max": max(speeds),
    "bsuite_steps_per_s": peer_median,
    "bsuite_min": min(peer_speeds),
    "bsuite_max": max(peer_speeds),
    "ratio_of_medians": median / peer_median,
    "median_ratio": statistics.median(
      a / b for a, b in zip(speeds, peer_speeds, strict=True)
    ),
    "goal": goal,
    "compilations": max(s["compilations"] for s in ours),
    "samples": {"explorax": ours, "bsuite": peers},
  }


def measure_parts(quick: bool = False) -> list[Row]:
  """Milliseconds of a step by part, each part waited for before the next begins."""
  rows = []
  for size, (env, steps, _) in SIZES.items():
    for replay in ("reverb", "memory"):
      result = sample(
        "parts", env=env, replay=replay, steps=steps // 10 if quick else steps
      )
      rows.append(
        {"N": size, "replay": replay, **{f"{k}_ms": v for k, v in result.items()}}
      )
  return rows


def measure_memory(quick: bool = False) -> list[Row]:
  """A run's peak, with TensorFlow, Reverb and learning, at N = 50."""
  env = SIZES[50][0]
  result = sample("memory", env=env, steps=1000 if quick else 10_000)
  return [{"N": 50, "replay": "reverb", **result, "goal_mib": PEAK_GOAL_MIB}]


def measure_replay_memory(quick: bool = False) -> list[Row]:
  """Bytes that a transition costs in replay at N = 50; an observation is an index."""
  env = SIZES[50][0]
  # So many that what they cost stands out from what the process holds anyway.
  steps = {"reverb": 10_000 if quick else 50_000, "memory": 200_000}
  return [
    {"N": 50, "replay": r, **sample("replay", env=env, replay=r, steps=n)}
    for r, n in steps.items()
  ]
