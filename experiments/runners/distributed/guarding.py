"""Environments of a separate process: watched, and recreated when they crash."""

import dm_env

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import errors, threads
from explorax.experiments.runners import core, recovery
from explorax.experiments.runners.distributed import board_client, watchdog

_DEFAULT_TIMEOUT = 300  # Seconds that a call of an environment may take.
# More failures than a process can have, so that all environments differ in their seeds.
_FAILURES = 2**20


def unpickled(agent_and_make: bytes) -> tuple[types.Agent, core.MakeEnvironment]:
  """The agent and `make_environment`, unpickled with jax restricted to one thread.

  Unpickling an agent's arrays initialises jax, which reads its number of threads only
  then. Ray would unpickle a constructor's arguments before the constructor runs.
  """
  import ray

  threads.use_one_thread()
  return ray.cloudpickle.loads(agent_and_make)


class EnvironmentFactory:
  """Makes the environments of a process, with a watchdog against hangs."""

  def __init__(
    self,
    make_environment: core.MakeEnvironment,
    config: config_lib.RunConfig,
    client: board_client.BoardClient,
  ):
    self._make_environment = make_environment
    self._max_failures = config.max_env_failures
    self._client = client
    self._watchdog = watchdog.Watchdog(
      client.explain, config.environment_timeout or _DEFAULT_TIMEOUT
    )

  def make(
    self, role: str, number: int = 0, num_envs: int = 1, process: str = ""
  ) -> recovery.RecoverableEnvironment:
    """Makes an environment of the run; its failures are reported to the board.

    Args:
      role: `TRAINING` or `EVALUATION`.
      number: index among those of the role.
      num_envs: of the role, in all processes.
      process: its name, for reports of failures.
    """
    earlier = _FAILURES * self._client.incarnation

    def make(role: str, failures: int) -> dm_env.Environment:
      return self._make_environment(role, number + num_envs * (failures + earlier))

    def on_failure(failure: core.Failure) -> None:
      where = f"{failure.place} of {process}" if process else failure.place
      self._client.add(_portable(failure._replace(place=where)))

    with self._watchdog:
      environment = make(role, 0)
    return recovery.RecoverableEnvironment(
      environment,
      role,
      make=make if self._max_failures else None,
      max_failures=self._max_failures,
      on_failure=on_failure,
      watched=lambda: self._watchdog,
    )


def _portable(failure: core.Failure) -> core.Failure:
  """A failure whose exception other processes can unpickle."""
  import ray

  try:
    ray.cloudpickle.loads(ray.cloudpickle.dumps(failure))
  except Exception:
    return failure._replace(error=RuntimeError(errors.describe(failure.error)))
  return failure
