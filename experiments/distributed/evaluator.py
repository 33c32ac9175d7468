"""The evaluator's process."""

import time
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import builder as builder_lib
from explorax.experiments.distributed import actor_process, messages, pulse
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import clock, core, evaluation, recovery

_SECONDS_BETWEEN_LOOKS = 0.2  # At whether the run is stopped.


class Tape:
  """A watcher that notes what it sees, to be shown to another one later."""

  def __init__(self, draws: bool):
    self.draws = draws
    self.calls: list[tuple[str, tuple[Any, ...]]] = []

  def begin(self) -> None:
    self.calls.append(("begin", ()))

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    self.calls.append(("row", (frame, r_int)))

  def end(self, episode: core.EvaluationEpisode) -> None:
    self.calls.append(("end", (episode,)))


def show(calls: list[tuple[str, tuple[Any, ...]]], watcher: core.Watcher) -> None:
  """Shows a watcher what a `Tape` has noted."""
  for method, arguments in calls:
    getattr(watcher, method)(*arguments)


class EvaluatorProcess:
  """Evaluates whenever that is due; runs as a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    key: Any,
    *,
    make_environment: actor_process.MakeEnvironment,
    remakes: bool,
    max_env_failures: int,
    num_episodes: int,
    draws: bool | None,
    collector: Any,
    generation: int,
    environment_timeout: float,
  ):
    """Prepares to evaluate.

    Args:
      agent: of the run.
      key: of acting.
      make_environment: makes the environment.
      remakes: whether one that has crashed is made anew.
      max_env_failures: how many crashes in a row are recovered from.
      num_episodes: of each evaluation.
      draws: whether there is a watcher that wants pictures; None: there is none.
      collector: the Ray actor, which says when.
      generation: how many processes it had before.
      environment_timeout: seconds after which the driver gives up an environment that
        does not answer, and with it the process.
    """
    import ray

    self._ray = ray
    self._collector = collector
    self._generation = generation
    self._done: messages.Watched | None = None  # The last one.
    self._held = weights_lib.Held()
    self._tape = None if draws is None else Tape(draws)
    self._stopped = collector.stopped.remote()
    self._looked = time.monotonic()
    watch = pulse.Pulse(
      lambda seconds: collector.beat.remote(messages.EVALUATOR, generation, seconds),
      environment_timeout,
    )
    with watch.watched():
      first = self._make(make_environment, actor_process.FAILURES * generation)
    self._environment = recovery.RecoverableEnvironment(
      first,
      core.EVALUATION,
      make=(
        lambda _, failures: self._make(
          make_environment, failures + actor_process.FAILURES * generation
        )
      )
      if remakes
      else None,
      max_failures=max_env_failures,
      on_failure=self._on_failure,
      watched=watch.watched,
    )
    actor = builder_lib.Builder(agent).make_actor(
      jax.random.fold_in(jnp.asarray(key), generation), self._held, evaluation=True
    )
    self._evaluations = evaluation.Evaluations(
      actor,
      self._environment,
      clock.Clock(),
      every=None,
      num_episodes=num_episodes,
      stop=self._is_stopped,
      watcher=self._tape,
      on_evaluation=self._on_evaluation,
    )

  def run(self) -> None:
    """Evaluates until the run is over.

    Raises:
      recovery.GivenUpError: if the environment crashed too often in a row.
    """
    while summons := self._ray.get(self._collector.summons.remote()):
      done = self._done
      if done is not None and done.evaluation.env_steps >= summons.env_steps:
        self._tell(done)  # The collector has died since.
        continue
      self._held.fetch(summons.version)
      if self._held.version != summons.version:  # Lost with their learner.
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        continue
      self._evaluations.at_the_end(summons.env_steps)

  def _make(
    self, make_environment: actor_process.MakeEnvironment, number: int
  ) -> dm_env.Environment:
    return make_environment(core.EVALUATION, number)

  def _is_stopped(self) -> bool:
    now = time.monotonic()
    if now - self._looked < _SECONDS_BETWEEN_LOOKS:
      return False
    self._looked = now
    return bool(self._ray.wait([self._stopped], timeout=0)[0])

  def _on_evaluation(self, done: core.Evaluation) -> None:
    calls = []
    if self._tape is not None:
      calls, self._tape.calls = self._tape.calls, []
    self._done = messages.Watched(done, calls)
    self._tell(self._done)

  def _tell(self, done: messages.Watched) -> None:
    self._ray.get(self._collector.add_evaluation.remote(done, self._generation))

  def _on_failure(self, failure: core.Failure) -> None:
    self._ray.get(self._collector.add_failure.remote(actor_process.portable(failure)))
