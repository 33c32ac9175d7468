"""Speed of the distributed runner's actors."""

import functools
from concurrent import futures

import bench

NUM_ACTORS = (1, 2, 4)
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


TABLES = (
  bench.Table("Acting in processes: environment steps per second", measure_acting),
)
