"""One measurement of the distributed runner, in a process of its own.

`distributed.py` starts it:

  python benchmarks/distributed_sample.py acting --how=ray --num_actors=4
  python benchmarks/distributed_sample.py learning --agent=dqn --env=bsuite:catch/0
  python benchmarks/distributed_sample.py weights --agent=r2d2
  python benchmarks/distributed_sample.py replay --agent=r2d2

The last line printed is the result as JSON.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dm_env
import jax
import loops
import numpy as np
import processes
import sequences

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import learner as learner_lib
from explorax.experiments import config as config_lib
from explorax.experiments import presets, ray_cluster, threads
from explorax.experiments.distributed import layout as layout_lib
from explorax.experiments.distributed import learner_process
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import core, distributed

HOWS = ("ray", "plain", "bare")
_ENDLESS = 10_000_000  # Environment steps that no measurement comes to.
_SECONDS_BETWEEN_WORDS = 0.5  # Of a learner that counts its time.
_STEPS = 20  # Between two looks at the clock.


def _make(agent_name: str, env: str, **changes: Any) -> tuple[str, types.Agent]:
  """(The environment's name, the agent of a preset with other settings.)"""
  preset = presets.PRESETS[agent_name]
  name = preset.environment_for(env)
  config = dataclasses.replace(preset.config_for(name), **changes)
  return name, preset.make_agent(config, environments.spec(_environment(name, 0)))


def _asleep(agent_name: str, env: str) -> tuple[str, types.Agent]:
  """As `_make`; replay is never full enough for an update."""
  return _make(agent_name, env, replay_capacity=_ENDLESS, min_replay_size=_ENDLESS)


def _environment(name: str, number: int) -> dm_env.Environment:
  return environments.make(name, seed=number)


def _of_role(name: str, role: str, number: int) -> dm_env.Environment:
  """As the distributed runner asks for environments."""
  del role
  return _environment(name, number)


# --- Acting ---------------------------------------------------------------------------


def measure_acting(
  how: str, agent_name: str, env: str, num_actors: int, seconds: float
) -> dict[str, Any]:
  """Environment steps per second of several actors while nothing is learnt.

  Args:
    how: `ray`: as the distributed runner has them, with Reverb; `plain`: the same
      actors in processes that write what they see nowhere; `bare`: environments alone
      in such processes.
    agent_name: a preset.
    env: the environment.
    num_actors: how many processes act.
    seconds: that are measured, once all of them act.
  """
  if how == "ray":
    return _acting_with_ray(agent_name, env, num_actors, seconds)
  context = multiprocessing.get_context("spawn")
  barrier, results = context.Barrier(num_actors), context.SimpleQueue()
  workers = [
    context.Process(
      target=_act, args=(how, agent_name, env, i, num_actors, seconds, barrier, results)
    )
    for i in range(num_actors)
  ]
  for worker in workers:
    worker.start()
  for worker in workers:
    worker.join()
    if worker.exitcode:
      raise RuntimeError(f"an actor's process ended with code {worker.exitcode}.")
  found = [results.get() for _ in workers]
  speeds = [speed for speed, _ in found]
  cores = {f"actor {i}": cpu for i, (_, cpu) in enumerate(found)}
  return {"steps_per_s": sum(speeds), "cores": cores}


class _Nowhere:
  """A writer that keeps nothing."""

  def append(self, row: adder_lib.Row) -> None: ...

  def pad(self) -> None: ...

  def create_window(self) -> None: ...

  def end_episode(self) -> None: ...


def _act(
  how: str,
  agent_name: str,
  env: str,
  number: int,
  num_actors: int,
  seconds: float,
  barrier: Any,
  results: Any,
) -> None:
  """What a process does that is no Ray actor: puts its steps per second, and cores."""
  threads.use_one_thread()
  jax.config.update("jax_platforms", "cpu")
  name, agent = _asleep(agent_name, env)
  environment = _environment(name, number)
  if how == "bare":
    loop = loops.bare(environment, np.random.default_rng(number))
  else:
    actor_key, learner_key = jax.random.split(jax.random.PRNGKey(number))
    learner = learner_lib.Learner(agent, iter(()), lambda *_: None, learner_key)
    actor = actor_lib.Actor(
      agent,
      agent.actor(),
      learner,
      actor_key,
      actor_ids=(number,),
      num_actors=num_actors,
    )
    adder = adder_lib.WindowAdder(agent, _Nowhere())
    loop = loops.acting_in_one(environment, actor, adder)
  loop.run(10 * _STEPS)
  barrier.wait()
  steps, start, cpu = 0, time.perf_counter(), processes.cpu_seconds(os.getpid())
  while (spent := time.perf_counter() - start) < seconds:
    loop.run(_STEPS)
    steps += _STEPS
  results.put((steps / spent, (processes.cpu_seconds(os.getpid()) - cpu) / spent))


class _Window:
  """Environment steps between two of a run's episodes.

  It opens once every actor has ended two episodes, and closes `seconds` later.
  """

  def __init__(self, num_actors: int, seconds: float):
    self._left = dict.fromkeys(range(num_actors), 2)
    self._seconds = seconds
    self._first: core.Episode | None = None
    self._last: core.Episode | None = None
    self.pids: Mapping[str, int] = {}
    self._cpu: dict[str, float] = {}

  def on_processes(self, pids: Mapping[str, int]) -> None:
    self.pids = pids

  def on_episode(self, episode: core.Episode) -> None:
    if self.is_over():
      return
    if self._first is None:
      actor = int(episode.metrics["actor"])
      self._left[actor] -= 1
      if max(self._left.values()) <= 0:
        self._first, self._cpu = episode, self._seconds_of_cpu()
    self._last = episode

  def is_over(self) -> bool:
    if self._first is None or self._last is None:
      return False
    return self._last.wall_seconds - self._first.wall_seconds >= self._seconds

  def result(self) -> dict[str, Any]:
    """Steps and updates per second, and the share of a core that each process took."""
    if self._first is None or self._last is None:
      raise RuntimeError("the run ended before its actors had begun.")
    now = self._seconds_of_cpu()
    seconds = self._last.wall_seconds - self._first.wall_seconds
    steps = self._last.env_steps - self._first.env_steps
    updates = self._last.learner_updates - self._first.learner_updates
    return {
      "steps_per_s": steps / seconds,
      "updates_per_s": updates / seconds,
      "cores": {role: (now[role] - cpu) / seconds for role, cpu in self._cpu.items()},
    }

  def _seconds_of_cpu(self) -> dict[str, float]:
    return {role: processes.cpu_seconds(pid) for role, pid in self.pids.items()}


def _run(
  name: str,
  agent: types.Agent,
  num_actors: int,
  seconds: float,
) -> dict[str, Any]:
  """Runs the distributed runner until its window is over."""
  window = _Window(num_actors, seconds)
  result: dict[str, Any] = {}

  def stop() -> bool:
    if window.is_over() and not result:
      result.update(window.result())  # While the processes are there yet.
    return bool(result)

  distributed.run(
    agent,
    _environment(name, 0),
    config_lib.RunConfig(runner="distributed", num_actors=num_actors, steps=_ENDLESS),
    core.Hooks(
      make_environment=functools.partial(_of_role, name),
      on_episode=window.on_episode,
      on_processes=window.on_processes,
      stop=stop,
    ),
  )
  return result


def _acting_with_ray(
  agent_name: str, env: str, num_actors: int, seconds: float
) -> dict[str, Any]:
  name, agent = _asleep(agent_name, env)
  return _run(name, agent, num_actors, seconds)


# --- Learning -------------------------------------------------------------------------


class _Stopwatch:
  """Adds up seconds by what they were spent on."""

  def __init__(self):
    self.seconds: dict[str, float] = {}
    self._under_way: set[str] = set()

  @contextlib.contextmanager
  def __call__(self, what: str) -> Iterator[None]:
    """Counts the block, unless it is part of one that is counted as the same."""
    if what in self._under_way:
      yield
      return
    self._under_way.add(what)
    start = time.perf_counter()
    try:
      yield
    finally:
      spent = time.perf_counter() - start
      self.seconds[what] = self.seconds.get(what, 0.0) + spent
      self._under_way.remove(what)


class _TimedBatches:
  """An iterator whose waiting is counted."""

  def __init__(self, batches: Iterator[Any], watch: _Stopwatch):
    self._batches = batches
    self._watch = watch

  def __iter__(self) -> "_TimedBatches":
    return self

  def __next__(self) -> Any:
    with self._watch("for batches"):
      return next(self._batches)


class _TimedLearner(learner_lib.Learner):
  """A learner that counts its time from the second update on: the first compiles."""

  def __init__(
    self,
    watch: _Stopwatch,
    path: str,
    agent: types.Agent,
    batches: Iterator[Any],
    *others: Any,
  ):
    """As a learner; `path` gets the seconds of `watch`, now and then."""
    super().__init__(agent, _TimedBatches(batches, watch), *others)
    self._watch = watch
    self._path = pathlib.Path(path)
    self._began = self._told = 0.0

  def step(self) -> None:
    if self.num_updates == 1:
      self._watch.seconds.clear()
      self._began = time.perf_counter()
    with self._watch("updating"):
      super().step()

  def is_finite(self) -> bool:
    with self._watch("updating"):
      finite = super().is_finite()
    now = time.perf_counter()
    if self._began and now - self._told > _SECONDS_BETWEEN_WORDS:
      self._told = now
      seconds = {"all": now - self._began, **self._watch.seconds}
      self._path.write_text(json.dumps(seconds), encoding="utf-8")
    return finite


class _TimedProcess(learner_process.LearnerProcess):
  """A learner's process that writes to a file how it spends its time."""

  path = ""

  def __init__(self, *arguments: Any, **named: Any):
    watch, publish = _Stopwatch(), weights_lib.publish

    def timed(number, weights):
      with watch("publishing"):
        return publish(number, weights)

    weights_lib.publish = timed
    learner_lib.Learner = functools.partial(  # type: ignore[assignment,misc]
      _TimedLearner, watch, self.path
    )
    super().__init__(*arguments, **named)


def measure_learning(
  agent_name: str, env: str, num_actors: int, seconds: float
) -> dict[str, Any]:
  """How the learner spends its time in a run, and the speed of that.

  Learning begins after twice as many environment steps as a batch has items.
  """
  least = 2 * presets.PRESETS[agent_name].config_for(env).batch_size
  name, agent = _make(agent_name, env, replay_capacity=100_000, min_replay_size=least)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "seconds.json"
    original = learner_process.LearnerProcess
    _TimedProcess.path = str(path)
    learner_process.LearnerProcess = _TimedProcess  # type: ignore[misc]
    try:
      result = _run(name, agent, num_actors, seconds)
    finally:
      learner_process.LearnerProcess = original  # type: ignore[misc]
    spent = json.loads(path.read_text(encoding="utf-8"))
  return result | shares(spent)


def shares(spent: Mapping[str, float]) -> dict[str, float]:
  """Of the learner's time: what it waits for, and what it does.

  Args:
    spent: seconds `all`, `updating` (in which it waits `for batches`), and
      `publishing`; the rest it waits for steps.
  """
  batches = spent.get("for batches", 0.0)
  updating = spent.get("updating", 0.0) - batches
  publishing = spent.get("publishing", 0.0)
  return {
    "waiting": 1 - (updating + publishing) / spent["all"],
    "waiting_for_batches": batches / spent["all"],
    "updating": updating / spent["all"],
    "publishing": publishing / spent["all"],
  }


# --- Weights --------------------------------------------------------------------------


class _Reader:
  """Reads weights as an actor does; a Ray actor."""

  def __init__(self):
    jax.config.update("jax_platforms", "cpu")
    self._held = weights_lib.Held()

  def fetch(self, version: weights_lib.Version) -> float:
    """Milliseconds until a version is on this process's device."""
    start = time.perf_counter()
    self._held.fetch(version)
    jax.block_until_ready(self._held.get_variables(["params"]))
    return 1000 * (time.perf_counter() - start)


def measure_weights(agent_name: str, env: str, repeats: int) -> dict[str, Any]:
  """Milliseconds to put an agent's weights into Ray's store, and to read them there."""
  import ray

  _, agent = _asleep(agent_name, env)
  state = jax.jit(agent.learner.init)(jax.random.PRNGKey(0))
  weights = agent.learner.params(state)
  published, fetched = [], []
  with ray_cluster.connect(None, 1, num_bytes=256 * 2**20):
    reader: Any = ray.remote(_Reader).remote()
    for number in range(repeats + 1):
      start = time.perf_counter()
      version = weights_lib.publish(number, weights)
      published.append(1000 * (time.perf_counter() - start))
      fetched.append(ray.get(reader.fetch.remote(version)))
  return {
    "mib": sum(leaf.nbytes for leaf in jax.tree.leaves(weights)) / 2**20,
    # The first time begins more than that.
    "publish_ms": statistics.median(published[1:]),
    "fetch_ms": statistics.median(fetched[1:]),
  }


# --- Replay, and settings -------------------------------------------------------------


def _serve(agent_name: str, env: str, capacity: int, ports: Any, over: Any) -> None:
  """A Reverb server's process: puts its port, and ends when it is told to."""
  _, agent = _make(agent_name, env, replay_capacity=capacity, min_replay_size=1)
  replay: Any = builder_lib.Builder(agent).make_replay_tables("reverb", seed=0)
  ports.put(replay.port)
  over.wait()
  replay.close()


def measure_replay(
  agent_name: str, env: str, steps: int, batches: int
) -> dict[str, Any]:
  """Bytes on the way to and from a Reverb server, and the time it takes.

  Actions are random, as the recurrent state is: floats do not compress.

  Args:
    agent_name: a preset.
    env: the environment.
    steps: environment steps that are inserted.
    batches: that are sampled, after a few.
  """
  reverb_replay = builder_lib.import_reverb_replay()
  preset = presets.PRESETS[agent_name]
  period = preset.config_for(env).sequence_period
  least = preset.config_for(env).batch_size * period
  capacity = max(2 * steps, least)
  name, agent = _make(agent_name, env, replay_capacity=capacity, min_replay_size=1)
  context = multiprocessing.get_context("spawn")
  ports, over = context.SimpleQueue(), context.Event()
  server = context.Process(target=_serve, args=(agent_name, env, capacity, ports, over))
  server.start()
  try:
    assert server.pid is not None
    with processes.Proxy(ports.get()) as proxy:
      client = reverb_replay.ReverbClient(agent, f"localhost:{proxy.port}")
      inserted = _insert(agent, name, client, steps, proxy, server.pid)
      sampled = _sample(agent, client, batches, proxy, server.pid)
      client.close()
  finally:
    over.set()
    server.join(30)
    server.kill()
  return inserted | sampled


def _insert(
  agent: types.Agent, name: str, client: Any, steps: int, proxy: Any, pid: int
) -> dict[str, float]:
  rng = np.random.default_rng(0)
  writer = client.writer()
  adder = adder_lib.WindowAdder(agent, writer)
  extras = sequences.fake_extras(agent, rng)
  num_actions = agent.spec.actions.num_values

  def encoded(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    return timestep._replace(observation=agent.encoding(timestep.observation))

  def observe(action: Any, timestep: dm_env.TimeStep) -> None:
    adder.add(action, encoded(timestep), next(extras))
    if timestep.last():
      adder.add_last(next(extras))

  loop = loops.Loop(
    _environment(name, 0),
    lambda timestep: adder.add_first(encoded(timestep)),
    lambda _: rng.integers(num_actions),
    observe,
  )
  with _Counted(proxy, pid) as counted:
    loop.run(steps)
    writer.flush()
  return {
    "insert_bytes_per_step": counted.sent / steps,
    "insert_us_per_item": 1e6 * counted.cpu / adder.num_windows,
    "steps_per_item": steps / adder.num_windows,
  }


def _sample(
  agent: types.Agent, client: Any, batches: int, proxy: Any, pid: int
) -> dict[str, float]:
  size = agent.replay.batch_size
  iterator = client.batches()
  for _ in range(5):  # What is asked for ahead.
    next(iterator)
  with _Counted(proxy, pid) as counted:
    for _ in range(batches):
      keys, _ = next(iterator)
      client.update_priorities(keys, np.ones(size))
  return {
    "sample_bytes_per_item": counted.received / (batches * size),
    "sample_us_per_item": 1e6 * counted.cpu / (batches * size),
    "batches_per_s": batches / counted.seconds,
  }


class _Counted:
  """What passes a proxy and what a process computes while the block lasts."""

  def __init__(self, proxy: Any, pid: int):
    self._look: Callable[[], tuple[int, int, float, float]] = lambda: (
      proxy.sent,
      proxy.received,
      processes.cpu_seconds(pid),
      time.perf_counter(),
    )

  def __enter__(self) -> "_Counted":
    self._before = self._look()
    return self

  def __exit__(self, *error: Any) -> None:
    spent = (now - then for now, then in zip(self._look(), self._before, strict=True))
    self.sent, self.received, self.cpu, self.seconds = spent


def read_settings(agent_name: str, env: str) -> dict[str, Any]:
  """Of the preset, and how often one of its actors reports."""
  _, agent = _asleep(agent_name, env)
  spec = agent.replay
  limits = layout_lib.Layout().limits(spec, agent.actor_update_period, None)
  return {
    "pull_every": limits.grant,
    "batch_size": spec.batch_size,
    "updates_per_step": spec.updates_per_step,
  }


def _parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  commands = parser.add_subparsers(dest="what", required=True)
  acting = commands.add_parser("acting")
  acting.add_argument("--how", choices=HOWS, required=True)
  learning = commands.add_parser("learning")
  for command in (acting, learning):
    command.add_argument("--num_actors", type=int, default=2)
    command.add_argument("--seconds", type=float, default=20.0)
  weights = commands.add_parser("weights")
  weights.add_argument("--repeats", type=int, default=20)
  replay = commands.add_parser("replay")
  replay.add_argument("--steps", type=int, default=20_000, help="environment steps")
  replay.add_argument("--batches", type=int, default=50)
  settings = commands.add_parser("settings")
  for command in (acting, learning, weights, replay, settings):
    command.add_argument("--agent", default="r2d2")
    command.add_argument("--env", default="atari:Pong")
  return parser.parse_args()


def main() -> None:
  args = _parse()
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  of = (args.agent, args.env)
  if args.what == "acting":
    result = measure_acting(args.how, *of, args.num_actors, args.seconds)
  elif args.what == "learning":
    result = measure_learning(*of, args.num_actors, args.seconds)
  elif args.what == "weights":
    result = measure_weights(*of, args.repeats)
  elif args.what == "replay":
    result = measure_replay(*of, args.steps, args.batches)
  else:
    result = read_settings(*of)
  print(json.dumps(result), flush=True)


if __name__ == "__main__":
  main()
