"""One measurement on Deep Sea, in a process of its own; `deep_sea.py` starts it.

  python benchmarks/deep_sea_sample.py speed --agent=bsuite --env=bsuite:deep_sea/0
  python benchmarks/deep_sea_sample.py parts --env=bsuite:deep_sea/20
  python benchmarks/deep_sea_sample.py memory --env=bsuite:deep_sea/20 --steps=10000
  python benchmarks/deep_sea_sample.py replay --env=bsuite:deep_sea/20 --steps=50000

The last line printed is the result as JSON.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import bsuite
import dm_env
import jax
import numpy as np
import processes

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import packing
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.runners import local


class Stopwatch(dm_env.Environment):
  """Passes steps through, and reads the clock before the first and after the last.

  The measured steps are those after `warm_up`; both agents see the same watch.
  """

  def __init__(self, environment: dm_env.Environment, warm_up: int, steps: int):
    self._environment = environment
    self._warm_up = warm_up
    self._steps = steps
    self._compilations = processes.CompilationCounter()
    self._at: dict[int, tuple[float, int]] = {}
    self.num_steps = 0

  def reset(self) -> dm_env.TimeStep:
    return self._environment.reset()

  def step(self, action: Any) -> dm_env.TimeStep:
    # Step n + 1 begins when everything that belongs to step n is done.
    self._at[self.num_steps] = (time.perf_counter(), self._compilations.count)
    self.num_steps += 1
    return self._environment.step(action)

  def observation_spec(self) -> Any:
    return self._environment.observation_spec()

  def action_spec(self) -> Any:
    return self._environment.action_spec()

  def reward_spec(self) -> Any:
    return self._environment.reward_spec()

  def discount_spec(self) -> Any:
    return self._environment.discount_spec()

  def close(self) -> None:
    self._environment.close()

  @property
  def total(self) -> int:
    """Steps to take, one more than are measured: it stops the clock."""
    return self._warm_up + self._steps + 1

  def result(self) -> dict[str, Any]:
    start, compiled = self._at[self._warm_up]
    end, compiled_at_end = self._at[self._warm_up + self._steps]
    return {
      "steps_per_second": self._steps / (end - start),
      "compilations": compiled_at_end - compiled,
    }


def make_agent(environment: dm_env.Environment, **changes: Any) -> types.Agent:
  """`bootstrapped_dqn` with the settings of bsuite's `default_agent`."""
  preset = presets.PRESETS["bootstrapped_dqn"]
  config = dataclasses.replace(
    preset.config,
    num_members=20,
    hidden_sizes=(50, 50),
    prior_scale=5.0,
    target="q_learning",
    discount=0.99,
    n_step=1,
    learning_rate=1e-3,
    target_update_period=4,
    replay_capacity=10_000,
    min_replay_size=128,
    batch_size=128,
    updates_per_step=1.0,
  )
  config = dataclasses.replace(config, **changes)
  return preset.make_agent(config, environments.spec(environment))


def speed(
  agent: str, env: str, replay: str, warm_up: int, steps: int
) -> dict[str, Any]:
  """Environment steps per second, acting and learning."""
  if agent == "bsuite":
    watch = Stopwatch(bsuite.load_from_id(env.removeprefix("bsuite:")), warm_up, steps)
    updates = _run_peer(watch)
  else:
    watch = Stopwatch(environments.make(env, seed=0), warm_up, steps)
    updates = local.run(
      make_agent(watch),
      watch,
      config_lib.RunConfig(replay=replay, steps=watch.total),
    ).learner_updates
  return {**watch.result(), "env_steps": watch.num_steps, "learner_updates": updates}


def _run_peer(watch: Stopwatch) -> int:
  """bsuite's agent in the loop of `bsuite.baselines.experiment`; its updates."""
  # Here, so that its modules take no memory from the other measurements.
  from bsuite.baselines.jax import boot_dqn

  agent = boot_dqn.default_agent(watch.observation_spec(), watch.action_spec())
  while watch.num_steps < watch.total:
    timestep = watch.reset()
    while not timestep.last():
      action = agent.select_action(timestep)
      new_timestep = watch.step(action)
      agent.update(timestep, action, new_timestep)
      timestep = new_timestep
  # Of one member; all have as many. It has no public name.
  return int(agent._ensemble[0].step)


class Parts:
  """Seconds by part; a part inside another counts for the inner one alone."""

  def __init__(self) -> None:
    self._inner = [0.0]  # Seconds that parts inside the current one have taken.
    self._seconds: collections.Counter[str] = collections.Counter()

  def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its time put down to a part."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
      start = time.perf_counter()
      self._inner.append(0.0)
      try:
        return function(*args, **kwargs)
      finally:
        elapsed = time.perf_counter() - start
        self._seconds[part] += elapsed - self._inner.pop()
        self._inner[-1] += elapsed

    return wrapper

  def take(self) -> dict[str, float]:
    """What was put down since the last call."""
    seconds = dict(self._seconds)
    self._seconds.clear()
    return seconds


@contextlib.contextmanager
def _timed_wiring(parts: Parts) -> Iterator[None]:
  """Times what the builder makes, for as long as the context lasts.

  Updates run on while Python goes on; here each is waited for, so that its time is
  not put down to whatever needs the weights first.
  """
  make_iterator = builder_lib.Builder.make_dataset_iterator
  make_adder = builder_lib.Builder.make_adder
  make_actor = builder_lib.Builder.make_actor
  make_learner = builder_lib.Builder.make_learner

  def iterator(builder, *args):
    batches = make_iterator(builder, *args)
    sample = parts.timed("sampling", lambda: next(batches))
    return iter(sample, None)

  def adder(builder, *args):
    made = make_adder(builder, *args)
    for name in ("add_first", "add", "add_last"):
      setattr(made, name, parts.timed("inserting", getattr(made, name)))
    return made

  def actor(builder, *args, **kwargs):
    made = make_actor(builder, *args, **kwargs)
    for name in ("observe_first", "select_action", "observe", "update"):
      setattr(made, name, parts.timed("acting", getattr(made, name)))
    return made

  def learner(builder, *args):
    made = make_learner(builder, *args)
    step = made.step

    def wait() -> None:
      step()
      jax.block_until_ready(made.get_variables(["params"]))

    made.step = parts.timed("update", wait)
    return made

  with mock.patch.multiple(
    builder_lib.Builder,
    make_dataset_iterator=iterator,
    make_adder=adder,
    make_actor=actor,
    make_learner=learner,
  ):
    yield


class _StepTimer(Stopwatch):
  """A stopwatch that also takes the parts of every step."""

  def __init__(self, *args: Any, parts: Parts):
    super().__init__(*args)
    self._parts = parts
    self.steps: list[dict[str, float]] = []
    self._environment.step = parts.timed("environment", self._environment.step)

  def step(self, action: Any) -> dm_env.TimeStep:
    self.steps.append(self._parts.take())
    return super().step(action)


def time_parts(env: str, replay: str, warm_up: int, steps: int) -> dict[str, Any]:
  """Milliseconds that a step spends in each part: medians over the steps."""
  parts = Parts()
  watch = _StepTimer(environments.make(env, seed=0), warm_up, steps, parts=parts)
  with _timed_wiring(parts):
    config = config_lib.RunConfig(replay=replay, steps=watch.total)
    local.run(make_agent(watch), watch, config)
  measured = watch.steps[warm_up + 1 : warm_up + steps + 1]
  names = ("update", "sampling", "acting", "inserting", "environment")
  medians = {
    name: 1e3 * statistics.median(step.get(name, 0.0) for step in measured)
    for name in names
  }
  return {**medians, "all": 1e3 / watch.result()["steps_per_second"]}


def memory(env: str, replay: str, steps: int) -> dict[str, Any]:
  """The peak of this process's memory, TensorFlow included, after a run."""
  environment = environments.make(env, seed=0)
  agent = make_agent(environment)
  config = config_lib.RunConfig(replay=replay, steps=steps)
  result = local.run(agent, environment, config)
  return {
    "env_steps": result.env_steps,
    "learner_updates": result.learner_updates,
    "peak_mib": processes.status_mib("VmHWM"),
  }


def replay_memory(env: str, replay: str, steps: int) -> dict[str, Any]:
  """What one transition costs in replay: as stored, and as the process grows."""
  environment = environments.make(env, seed=0)
  agent = make_agent(environment, replay_capacity=2 * steps)
  store = builder_lib.Builder(agent).make_replay_tables(replay, seed=0)
  adder = builder_lib.Builder(agent).make_adder(store)
  rng = np.random.default_rng(0)

  def insert(num_steps: int) -> int:
    inserted = 0
    while inserted < num_steps:
      timestep = environment.reset()
      adder.add_first(
        timestep._replace(observation=agent.encoding(timestep.observation))
      )
      while not timestep.last():
        action = rng.integers(agent.spec.actions.num_values)
        timestep = environment.step(action)
        observation = agent.encoding(timestep.observation)
        adder.add(action, timestep._replace(observation=observation), {})
        inserted += 1
      adder.add_last({})
    return inserted

  insert(steps // 10)  # What is allocated once.
  before = processes.status_mib("VmRSS")
  inserted = insert(steps)
  grown = processes.status_mib("VmRSS") - before
  store.close()
  return {
    "transitions": inserted,
    "row_bytes": packing.RecordPacker(adder_lib.column_specs(agent)).num_bytes,
    "bytes_per_transition": grown * 2**20 / inserted,
  }


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("what", choices=("speed", "parts", "memory", "replay"))
  parser.add_argument("--agent", choices=("explorax", "bsuite"), default="explorax")
  parser.add_argument("--env", required=True)
  parser.add_argument("--replay", choices=builder_lib.BACKENDS, default="reverb")
  parser.add_argument("--warm_up", type=int, default=200, help="environment steps")
  parser.add_argument("--steps", type=int, default=1000, help="environment steps")
  args = parser.parse_args()
  if args.what == "speed":
    result = speed(args.agent, args.env, args.replay, args.warm_up, args.steps)
  elif args.what == "parts":
    result = time_parts(args.env, args.replay, args.warm_up, args.steps)
  elif args.what == "memory":
    result = memory(args.env, args.replay, args.steps)
  else:
    result = replay_memory(args.env, args.replay, args.steps)
  print(json.dumps(result), flush=True)


if __name__ == "__main__":
  main()
