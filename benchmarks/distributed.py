"""Speed of the distributed runner's actors, and how long it takes to replace them."""

import functools
import pathlib
import tempfile
from concurrent import futures

import bench
import soak

NUM_ACTORS = (1, 2, 4)
_ENDLESS = 10_000_000  # Environment steps.
_NEVER = 200_000  # Transitions before learning starts, more than a run has.
_WARM_UP, _STEPS = 5_000, 60_000  # Environment steps of an actor.
_ACTING = (
  "--agent=dqn",
  "--env=bsuite:catch/0",
  f"--set=replay_capacity={_NEVER}",
  f"--set=min_replay_size={_NEVER}",
)


def measure_acting(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second of all actors, on Catch, while nothing is learnt.

  Beside them are as many local runs at the same time, which store in memory.
  """
  rows = []
  for num_actors in NUM_ACTORS[1:2] if quick else NUM_ACTORS:
    contestants = {
      "distributed runner": functools.partial(_act_on_ray, num_actors),
      "local runs": functools.partial(_act_alone, num_actors),
    }
    found = bench.side_by_side(contestants, quick)
    rows += [{"actors": num_actors, **row} for row in found]
  return rows


def _act_on_ray(num_actors: int) -> bench.Row:
  flags = ["--runner=distributed", f"--num_actors={num_actors}"]
  steps = min(num_actors * _STEPS, _NEVER - 1)
  return bench.run_speed([*_ACTING, *flags, f"--steps={steps}"], num_actors * _WARM_UP)


def _act_alone(num_runs: int) -> bench.Row:
  flags = [*_ACTING, "--runner=local", "--replay=memory", f"--steps={_STEPS}"]
  with futures.ThreadPoolExecutor(num_runs) as pool:
    found = list(pool.map(bench.run_speed, [flags] * num_runs, [_WARM_UP] * num_runs))
  return {"steps_per_s": sum(row["steps_per_s"] for row in found)}


def measure_recovery(quick: bool = False) -> list[bench.Row]:
  """Seconds until a killed process, or after the board's death the run, is replaced."""
  del quick
  with tempfile.TemporaryDirectory() as folder:
    run = soak.Run(pathlib.Path(folder) / "run", f"--steps={_ENDLESS}")
    try:
      rows = []
      for role in soak.ROLES:
        run.wait(30.0)
        rows.append({"killed": role, "replaced_s": run.kill(role)})
    finally:
      run.end()
  return rows


TABLES = (
  bench.Table("Acting in processes: environment steps per second", measure_acting),
  bench.Table("Seconds after a kill", measure_recovery),
)
