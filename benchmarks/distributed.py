"""Speed of the distributed runner's actors with Ray and Reverb, and recovery times."""

import dataclasses
import functools
import multiprocessing
import pathlib
import tempfile
import time
from typing import Any

import bench
import dm_env
import jax
import soak

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments import config as config_lib
from explorax.experiments import presets, threads
from explorax.experiments.runners import core, distributed
from explorax.experiments.runners import loop as loop_lib

# (agent, environment, goal: the speed divided by that of plain processes)
CASES = (("r2d2", "atari:Pong", 0.85), ("dqn", "bsuite:catch/0", 0.5))
NUM_ACTORS = (1, 2, 4)
HOWS = ("ray", "plain")
_ENDLESS = 10_000_000  # Environment steps.
_STEPS = 20  # Environment steps between two readings of the clock.


def measure_acting(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second while the learner waits for its first update.

  Args:
    quick: whether to take short samples of two actors, only to see that everything
      runs.

  Returns:
    A row for each agent and number of actors: the speed with Ray and Reverb, and that
    of the same actors in plain processes without replay. All rows take 7 minutes.
  """
  rows = []
  for agent, env, goal in CASES:
    for num_actors in (2,) if quick else NUM_ACTORS:
      ray, plain = (
        bench.sample(
          "distributed:act",
          how=how,
          agent=agent,
          env=env,
          num_actors=num_actors,
          seconds=3 if quick else 10,
        )
        for how in HOWS
      )
      rows.append(
        {
          "agent": agent,
          "env": env,
          "actors": num_actors,
          "ray_and_reverb_steps_per_s": ray,
          "without_steps_per_s": plain,
          "share": ray / plain,
          "goal": goal,
        }
      )
  return rows


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


def act(how: str, agent: str, env: str, num_actors: int, seconds: float) -> float:
  """One sample of `measure_acting`: steps per second of all actors."""
  if how == "ray":
    return _act_on_ray(agent, env, num_actors, seconds)
  context = multiprocessing.get_context("spawn")
  barrier, results = context.Barrier(num_actors), context.SimpleQueue()
  workers = [
    context.Process(
      target=_act_plainly, args=(agent, env, i, num_actors, seconds, barrier, results)
    )
    for i in range(num_actors)
  ]
  for worker in workers:
    worker.start()
  for worker in workers:
    worker.join()
    if worker.exitcode:
      raise RuntimeError(f"an actor's process ended with code {worker.exitcode}.")
  return sum(results.get() for _ in workers)


def _make(agent_name: str, env: str) -> tuple[str, types.Agent]:
  """The environment's full name, and an agent that never starts to learn."""
  preset = presets.PRESETS[agent_name]
  name = preset.environment_for(env)
  config = dataclasses.replace(
    preset.config_for(name), replay_capacity=_ENDLESS, min_replay_size=_ENDLESS
  )
  return name, preset.make_agent(config, environments.spec(_environment(name, "", 0)))


def _environment(name: str, role: str, number: int) -> dm_env.Environment:
  del role
  return environments.make(name, seed=number)


class _Meter:
  """A stand-in for the checkpointer that receives the step counts."""

  found, with_replay, directory = None, False, pathlib.Path()

  def __init__(self, num_actors: int):
    self._silent = set(range(num_actors))
    self.marks: list[tuple[float, int]] = []  # (seconds, environment steps)

  def on_episode(self, episode: core.Episode) -> None:
    self._silent.discard(int(episode.metrics["actor"]))

  def is_due(self, env_steps: int) -> bool:
    if not self._silent:  # Each actor has compiled and ended an episode.
      self.marks.append((time.perf_counter(), env_steps))
    return False

  def save(self, env_steps: int, snapshot: Any) -> bool:
    del env_steps, snapshot
    return True

  @property
  def seconds(self) -> float:
    return self.marks[-1][0] - self.marks[0][0] if self.marks else 0.0


def _act_on_ray(agent_name: str, env: str, num_actors: int, seconds: float) -> float:
  """Steps per second on Ray, measured after each actor has ended an episode."""
  name, agent = _make(agent_name, env)
  meter: Any = _Meter(num_actors)
  config = config_lib.RunConfig(
    agent=agent_name,
    env=name,
    runner="distributed",
    num_actors=num_actors,
    steps=100 * _ENDLESS,
  )
  hooks = core.Hooks(
    on_episode=meter.on_episode,
    stop=lambda: meter.seconds >= seconds,
    make_environment=functools.partial(_environment, name),
    checkpoints=meter,
  )
  distributed.run(agent, _environment(name, "", 0), config, hooks)
  return (meter.marks[-1][1] - meter.marks[0][1]) / meter.seconds


class _NullWriter:
  """A replay writer that discards all rows."""

  def append(self, row: adder_lib.Row) -> None: ...

  def pad(self) -> None: ...

  def create_window(self, priority: float) -> None: ...

  def end_episode(self) -> None: ...


def _act_plainly(
  agent_name: str,
  env: str,
  number: int,
  num_actors: int,
  seconds: float,
  barrier: Any,
  results: Any,
) -> None:
  """The work of a plain process: acts, and puts its steps per second in `results`."""
  threads.use_one_thread()
  jax.config.update("jax_platforms", "cpu")
  name, agent = _make(agent_name, env)
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(number))
  learner = learner_lib.Learner(agent, iter(()), lambda *_: None, learner_key)
  actor = actor_lib.Actor(
    agent,
    agent.actor(),
    learner,
    actor_key,
    [adder_lib.WindowAdder(agent, _NullWriter())],
    actor_ids=(number,),
    num_actors=num_actors,
  )
  loop = loop_lib.EnvironmentLoop([_environment(name, "", number)], actor)
  for _ in range(10 * _STEPS):
    loop.step()
  barrier.wait()
  steps, start = 0, time.perf_counter()
  while (spent := time.perf_counter() - start) < seconds:
    for _ in range(_STEPS):
      loop.step()
    steps += _STEPS
  results.put(steps / spent)


TABLES = (
  bench.Table(
    "The distributed runner's actors while its learner waits: environment steps per "
    "second of all",
    measure_acting,
  ),
  bench.Table("Seconds after a kill", measure_recovery),
)
