"""Speed of the device runner on Deep Sea, compared with bsuite's agent.

  python benchmarks/run.py --only=device
  python benchmarks/device.py --seeds=1,2,4,8,16,32,64,128   # no peer; for a GPU

The peer and the settings are those of `deep_sea.py`. Ours is the command line with
`--runner=device`, which compiles acting, replay and learning into one program.
"""

import argparse
import functools
import os

import bench
import deep_sea

from explorax.experiments.reports import markdown

# N → (bsuite's id, steps of the peer's sample, steps of our sample, the goal: the speed
# of one seed divided by the peer's).
SIZES = {10: ("deep_sea/0", 800, 3000, 4.0), 50: ("deep_sea/20", 250, 1000, 4.5)}
NUM_SEEDS = (1, 8)
WARM_UP = 600  # Environment steps of each seed.


def measure(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second of one seed and of eight, beside the peer's.

  Args:
    quick: whether to take one short sample of each, only to see that everything runs.
  """
  rows = []
  for size, (bsuite_id, peer_steps, steps, goal) in SIZES.items():
    total = deep_sea.WARM_UP + (2 * size if quick else peer_steps)
    ours = {
      str(seeds): functools.partial(sample, size, seeds, 500 if quick else steps)
      for seeds in NUM_SEEDS
    }
    found = deep_sea.beside_bsuite(bsuite_id, total, ours, quick, same=False)
    for seeds in NUM_SEEDS:
      row = {"N": size, "seeds": seeds, **found[str(seeds)]}
      rows.append({**row, "goal": goal} if seeds == 1 else row)
  return rows


def sample(
  size: int, seeds: int, steps: int, platform: str | None = "cpu"
) -> bench.Row:
  """The speed of a run from the command line, summed over its seeds."""
  flags = ["--agent=bootstrapped_dqn", "--runner=device", f"--env=jax:deep_sea/{size}"]
  flags += [f"--seeds={seeds}", f"--steps={WARM_UP + steps}"]
  found = bench.run_speed(flags, WARM_UP, platform)
  # There is one update per step, from the 128th step on.
  if abs(found["env_steps"] - found["learner_updates"] - 127) > size:
    raise RuntimeError(f"the run did not make one update per step: {found}.")
  return found


TABLES = (
  bench.Table(
    "The device runner on Deep Sea, beside bsuite's agent: environment steps per "
    "second, all seeds",
    measure,
  ),
)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--seeds", default="1,2,4,8,16,32")
  parser.add_argument("--sizes", default="10,50")
  parser.add_argument(
    "--steps", type=int, default=1000, help="environment steps of each seed"
  )
  args = parser.parse_args()
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
  rows = [
    {"N": size, "seeds": seeds} | sample(size, seeds, args.steps, platform=None)
    for size in map(int, args.sizes.split(","))
    for seeds in map(int, args.seeds.split(","))
  ]
  print(markdown.table(rows))


if __name__ == "__main__":
  main()
