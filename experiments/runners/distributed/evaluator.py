"""The evaluator's process."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents.wiring import builder as builder_lib
from explorax.experiments.runners import clock, core, evaluation
from explorax.experiments.runners.distributed import board_client, envs, messages

_SECONDS_BETWEEN_LOOKS = 0.1


class ObserverCalls:
  """An observer that records its calls, to replay them in another process."""

  def __init__(self, draws: bool):
    self.draws = draws
    self.calls: list[tuple[str, tuple[Any, ...]]] = []

  def begin(self) -> None:
    self.calls.append(("begin", ()))

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    self.calls.append(("row", (frame, r_int)))

  def end(self, episode: core.EvaluationEpisode) -> None:
    self.calls.append(("end", (episode,)))


def replay(
  calls: list[tuple[str, tuple[Any, ...]]], observer: core.EvaluationObserver
) -> None:
  """Makes the recorded calls of an `ObserverCalls` on `observer`."""
  for method, arguments in calls:
    getattr(observer, method)(*arguments)


class EvaluatorProcess:
  """Evaluates the newest weights whenever an evaluation is due; a Ray actor.

  An evaluation is skipped if the previous one takes longer than the interval.
  """

  def __init__(
    self,
    run: messages.Run,
    agent_and_make: bytes,
    key: Any,
    draws: bool | None,
  ):
    """Prepares to evaluate.

    Args:
      run: of the process.
      agent_and_make: see `envs.unpickled`.
      key: of acting.
      draws: whether the observer needs pictures; None: there is no observer.
    """
    agent, make_environment = envs.unpickled(agent_and_make)
    config = run.config
    self._every = config.eval_every
    self._client = board_client.BoardClient(run, messages.EVALUATOR)
    self._done_at = 0
    self._calls = None if draws is None else ObserverCalls(draws)
    builder = builder_lib.Builder(agent)
    self._evaluations = evaluation.Evaluations(
      builder.make_actor(
        jax.random.fold_in(jnp.asarray(key), self._client.number),
        self._client,
        evaluation=True,
      ),
      envs.make(make_environment, run, self._client, core.EVALUATION),
      clock.Clock(),
      config,
      core.Hooks(
        stop=lambda: self._client.latest.phase == messages.STOPPED,
        observer=self._calls,
        on_evaluation=self._on_evaluation,
      ),
    )

  def run(self) -> None:
    """Evaluates until the run is over, with an evaluation at the end.

    Raises:
      recovery.UnrecoverableError: if the environment crashed too often in a row.
    """
    while (phase := self._client.latest.phase) < messages.EVALUATING:
      if self._is_due() and self._client.fetch():
        self._evaluations.evaluate(self._client.latest.env_steps)
      else:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    latest = self._client.latest
    is_new = latest.env_steps > max(self._done_at, latest.evaluated_at)
    if phase == messages.EVALUATING and is_new and self._client.fetch():
      self._evaluations.evaluate(latest.env_steps)
    self._client.close()

  def _is_due(self) -> bool:
    latest, every = self._client.latest, self._every
    done_at = max(self._done_at, latest.evaluated_at)
    return every is not None and latest.env_steps // every > done_at // every

  def _on_evaluation(self, done: core.Evaluation) -> None:
    calls = []
    if self._calls is not None:
      calls, self._calls.calls = self._calls.calls, []
    self._done_at = done.env_steps
    self._client.add(messages.EvaluationDone(done, calls))
