"""The device runner on Deep Sea: beside bsuite's agent, and with many seeds at once.

  python benchmarks/run.py --only=device
  python benchmarks/device.py --seeds=1,2,4,8,16,32,64,128 --plot=seeds.png

The peer is that of `deep_sea.py`, with the same settings; here acting, replay and
learning are one program. Both make one update of every member after each step. Each
sample is a process of its own, and the contestants take turns. The plot, of steps per
second against the number of seeds, is for a GPU as well: the peer is left out there.
"""

import argparse
import pathlib
import statistics
from typing import Any

import processes

_SAMPLE = pathlib.Path(__file__).resolve().with_name("device_sample.py")
_PEER = pathlib.Path(__file__).resolve().with_name("deep_sea_sample.py")

# N → (bsuite's name, steps of the peer's sample, of ours, how many times as fast as the
# peer one seed means to be).
SIZES = {
  10: ("bsuite:deep_sea/0", 800, 3000, 4.0),
  50: ("bsuite:deep_sea/20", 250, 1000, 4.5),
}
MANY = 8

Row = dict[str, Any]


def measure(quick: bool = False) -> list[Row]:
  """Environment steps per second of one seed and of eight, beside the peer's.

  Args:
    quick: one short sample of each, only to see that everything runs.
  """
  rows = []
  for size, (env, peer_steps, steps, goal) in SIZES.items():
    rounds, share = (1, 10) if quick else (3, 1)
    peers, ours = [], {1: [], MANY: []}  # type: ignore[var-annotated]
    for i in range(rounds):
      order: list[int | None] = [None, *ours]
      # There and back: a machine that slows down steadily favours none.
      for seeds in order if i % 2 == 0 else order[::-1]:
        if seeds is None:
          peers.append(
            processes.sample(
              _PEER, "speed", agent="bsuite", env=env, steps=peer_steps // share
            )
          )
        else:
          ours[seeds].append(sample(size, seeds, max(300, steps // share)))
    for seeds, samples in ours.items():
      rows.append(_row(size, seeds, samples, peers, goal if seeds == 1 else None))
  return rows


def sample(size: int, seeds: int, steps: int, platform: str | None = "cpu") -> Row:
  """What `device_sample.py` measured."""
  return processes.sample(
    _SAMPLE, "speed", platform=platform, size=size, seeds=seeds, steps=steps
  )


def _row(
  size: int, seeds: int, samples: list[Row], peers: list[Row], goal: float | None
) -> Row:
  speeds = [s["steps_per_second"] for s in samples]
  peer_speeds = [s["steps_per_second"] for s in peers]
  row = {
    "N": size,
    "seeds": seeds,
    "explorax_steps_per_s": statistics.median(speeds),
    "explorax_min": min(speeds),
    "explorax_max": max(speeds),
    "bsuite_steps_per_s": statistics.median(peer_speeds),
    "ratio_of_medians": statistics.median(speeds) / statistics.median(peer_speeds),
    "median_ratio": statistics.median(
      a / b for a, b in zip(speeds, peer_speeds, strict=True)
    ),
    "compilations": max(s["compilations"] for s in samples),
    "samples": {"explorax": samples, "bsuite": peers},
  }
  return row if goal is None else {**row, "goal": goal}


def plot(rows: list[Row], path: pathlib.Path) -> None:
  """Steps per second of all seeds together, against their number."""
  from matplotlib import figure

  fig = figure.Figure(figsize=(6.4, 4.0), dpi=150, layout="constrained")
  axes = fig.subplots()
  for size, style in zip(
    sorted({row["N"] for row in rows}), ("o-", "s--"), strict=False
  ):
    own = [row for row in rows if row["N"] == size]
    seeds = [row["seeds"] for row in own]
    speeds = [row["steps_per_second"] for row in own]
    axes.plot(seeds, speeds, style, label=f"N = {size}")
    ideal = [speeds[0] / seeds[0] * n for n in seeds]
    axes.plot(seeds, ideal, color="0.7", lw=0.8, zorder=1)
  axes.plot([], [], color="0.7", lw=0.8, label="in proportion")
  axes.set_xscale("log", base=2)
  axes.set_yscale("log")
  axes.set_xticks(seeds, [str(n) for n in seeds])
  axes.set_xlabel("seeds at once")
  axes.set_ylabel("environment steps per second, all seeds")
  axes.set_title(f"Bootstrapped DQN on Deep Sea, {rows[0]['device']}")
  axes.grid(alpha=0.3)
  axes.legend()
  fig.savefig(path)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--seeds", default="1,2,4,8,16,32")
  parser.add_argument("--sizes", default="10,50")
  parser.add_argument("--steps", type=int, default=1000, help="of each seed")
  parser.add_argument("--plot", type=pathlib.Path, default="device_seeds.png")
  args = parser.parse_args()
  rows = []
  for size in map(int, args.sizes.split(",")):
    for seeds in map(int, args.seeds.split(",")):
      result = sample(size, seeds, args.steps, platform=None)
      rows.append({"N": size, "seeds": seeds, **result})
      print(rows[-1], flush=True)
      plot(rows, args.plot)
  print(f"drawn in {args.plot}")


if __name__ == "__main__":
  main()
