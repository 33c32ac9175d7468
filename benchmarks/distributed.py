"""The distributed runner: speed, waiting, weights, recovery, and what it scales to.

Each sample is a process of its own. What is compared takes turns.
"""

import pathlib
import statistics
import tempfile
from typing import Any

import bench
import processes
import scaling
import soak

_SAMPLE = pathlib.Path(__file__).resolve().with_name("distributed_sample.py")

R2D2 = ("r2d2", "atari:Pong")
CASES = (R2D2, ("dqn", "bsuite:catch/0"))
NUM_ACTORS = (1, 2, 4)
SHARE_GOAL = 0.8  # Of the speed without Ray and Reverb.

Row = dict[str, Any]


def sample(what: str, case: tuple[str, str], **flags: Any) -> dict[str, Any]:
  """What `distributed_sample.py` measured of an agent in an environment."""
  agent, env = case
  return processes.sample(_SAMPLE, what, agent=agent, env=env, **flags)


def measure_acting(quick: bool = False) -> list[Row]:
  """Environment steps per second while the learner sleeps.

  Args:
    quick: short samples of two actors, only to see that everything runs.

  Returns:
    A row for each agent and number of actors: medians with Ray and Reverb, of the same
    actors without, and of bare environments in as many processes.
  """
  rounds, seconds = (1, 3) if quick else (3, 15)
  rows = []
  for case in CASES:
    for num_actors in (2,) if quick else NUM_ACTORS:
      found: dict[str, list[Row]] = {"ray": [], "plain": [], "bare": []}
      for _ in range(rounds):
        for how, samples in found.items():
          flags = {"how": how, "num_actors": num_actors, "seconds": seconds}
          samples.append(sample("acting", case, **flags))
      rows.append(compare(case, num_actors, found))
  return rows


def compare(case: tuple[str, str], num_actors: int, found: dict[str, list[Row]]) -> Row:
  """A row of `measure_acting` from the samples of each way of acting."""
  speeds = {
    how: statistics.median(each["steps_per_s"] for each in samples)
    for how, samples in found.items()
  }
  return {
    "agent": case[0],
    "env": case[1],
    "actors": num_actors,
    "ray_and_reverb_steps_per_s": speeds["ray"],
    "without_steps_per_s": speeds["plain"],
    "environment_steps_per_s": speeds["bare"],
    "share": speeds["ray"] / speeds["plain"],
    "goal": SHARE_GOAL,
    "samples": found,
  }


def measure_learner(quick: bool = False) -> list[Row]:
  """How the learner of two actors spends its time."""
  seconds = 5 if quick else 30
  return [
    {"agent": case[0], "env": case[1]} | sample("learning", case, seconds=seconds)
    for case in (*CASES[1:], ("dqn", "atari:Pong"))
  ]


def measure_weights(quick: bool = False) -> list[Row]:
  """Milliseconds to publish the weights of R2D2, and to read them."""
  found = sample("weights", R2D2, repeats=3 if quick else 30)
  return [{"agent": "r2d2"} | found]


def measure_recovery(quick: bool = False) -> list[Row]:
  """Seconds until a process that was killed is replaced and its work is seen."""
  with tempfile.TemporaryDirectory() as folder:
    return soak.measure_recovery(pathlib.Path(folder) / "run", 1 if quick else 3)


def measure_scaling(quick: bool = False) -> list[Row]:
  """What 256 actors of R2D2 and one GPU would need, on paper."""
  costs = measure_costs(quick)
  rows = scaling.table(costs, scaling.Cluster())
  return [*rows, {"part": "from these costs", "costs": vars(costs)}]


def measure_costs(quick: bool = False) -> scaling.Costs:
  """The costs of an item, of R2D2 on Pong, with one actor."""
  flags = {"steps": 2000, "batches": 5} if quick else {"steps": 40_000, "batches": 50}
  replay = sample("replay", R2D2, **flags)
  weights = sample("weights", R2D2, repeats=3 if quick else 30)
  seconds = 3 if quick else 20
  acting = sample("acting", R2D2, how="ray", num_actors=1, seconds=seconds)
  settings = sample("settings", R2D2)
  # Of an agent that reports so often that the collector does little else.
  busy = sample("acting", CASES[1], how="ray", num_actors=2, seconds=seconds)
  pulls_per_s = busy["steps_per_s"] / sample("settings", CASES[1])["pull_every"]
  return scaling.Costs(
    steps_per_s=acting["steps_per_s"],
    insert_bytes_per_step=replay["insert_bytes_per_step"],
    insert_us_per_item=replay["insert_us_per_item"],
    steps_per_item=replay["steps_per_item"],
    sample_bytes_per_item=replay["sample_bytes_per_item"],
    sample_us_per_item=replay["sample_us_per_item"],
    weights_mib=weights["mib"],
    publish_ms=weights["publish_ms"],
    fetch_ms=weights["fetch_ms"],
    pull_us=1e6 * busy["cores"]["collector"] / pulls_per_s,
    **settings,
  )


TABLES = (
  bench.Table(
    "The distributed runner's actors while its learner sleeps: environment steps per "
    "second of all",
    measure_acting,
  ),
  bench.Table("Shares of the learner's time, with two actors", measure_learner),
  bench.Table("Weights through Ray's object store", measure_weights),
  bench.Table("Seconds after a kill", measure_recovery),
  bench.Table("R2D2 on Pong with 256 actors and one GPU, on paper", measure_scaling),
)
