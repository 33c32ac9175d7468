"""The sequence agents at full size on Atari: acting, replay's memory, and learning.

Each sample is a process of its own; what it compares takes turns in it. Acting and
replay are measured on the CPU, learning on whatever device JAX has.
"""

import pathlib
from typing import Any

import processes

_SAMPLE = pathlib.Path(__file__).resolve().with_name("sequences_sample.py")

AGENTS = ("r2d2", "r2d2_retrace", "ngu")
# Game → (environment steps that are inserted, MiB that 100 000 mean to stay under).
GAMES: dict[str, tuple[int, float | None]] = {
  "Pong": (100_000, 150.0),
  "MontezumaRevenge": (20_000, None),
  "MsPacman": (20_000, None),
}
# On a GPU also in these; on a CPU they are the same as float32.
LOWER_PRECISIONS = ("tensorfloat32", "bfloat16")
UPDATES_GOAL = 50.0  # Per second, on a GPU, with lower precision.

Row = dict[str, Any]


def sample(what: str, platform: str | None = "cpu", **flags: Any) -> dict[str, Any]:
  """What `sequences_sample.py` measured; see `processes.sample`."""
  return processes.sample(_SAMPLE, what, platform, **flags)


def measure_acting(quick: bool = False) -> list[Row]:
  """Steps per second of actors on Pong, beside the bare environment's.

  The actor writes to Reverb, or to the memory replay where there is no Reverb.

  Args:
    quick: a few steps, only to see that everything runs.

  Returns:
    A row for each agent: the medians of both, the share of the environment's speed
    that is left, and the compilations after the warm-up, which spans two fetches of
    the weights.
  """
  flags = {"rounds": 3, "steps": 100} if quick else {}
  return [
    {"agent": agent} | sample("acting", agent=agent, env="atari:Pong", **flags)
    for agent in AGENTS
  ]


def measure_replay_memory(quick: bool = False) -> list[Row]:
  """MiB of 100 000 Atari steps in Reverb, beyond the process with an empty server.

  Sequences of 80 overlap by 40, as `ngu` stores them; steps that were not inserted
  are extrapolated.
  """
  rows = []
  for game, (steps, goal) in GAMES.items():
    row = {"game": game}
    row |= sample(
      "replay",
      agent="ngu",
      env=f"atari:{game}",
      steps=min(steps, 5000) if quick else steps,
    )
    if goal is not None and "note" not in row:
      row["goal_mib"] = goal
    rows.append(row)
  return rows


def measure_learner(quick: bool = False) -> list[Row]:
  """Updates per second of `ngu`, in float32 and, on a GPU, in lower precisions."""
  flags: dict[str, Any] = {"agent": "ngu"}
  if quick:
    flags |= {"updates": 1, "warm_up": 1}
  rows = [sample("learner", platform=None, precision="float32", **flags)]
  if rows[0]["platform"] == "gpu":
    rows += [
      sample("learner", platform=None, precision=precision, **flags)
      | {"goal": UPDATES_GOAL}
      for precision in LOWER_PRECISIONS
    ]
  return rows
