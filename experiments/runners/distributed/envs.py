"""Environments of a separate process, recreated when they crash."""

import dm_env
import ray

from explorax.agents import types
from explorax.experiments import errors, threads
from explorax.experiments.runners import core, recovery
from explorax.experiments.runners.distributed import board_client, messages

WAITS = "waits for its environment"
# More failures than a process can have, so that all environments differ in their seeds.
_FAILURES = 2**20


def unpickled(agent_and_make: bytes) -> tuple[types.Agent, core.MakeEnvironment]:
  """The agent and `make_environment`, unpickled with jax restricted to one thread.

  Unpickling an agent's arrays initialises jax, which reads its number of threads only
  then. Ray would unpickle a constructor's arguments before the constructor runs.
  """
  threads.use_one_thread()
  return ray.cloudpickle.loads(agent_and_make)


def make(
  make_environment: core.MakeEnvironment,
  run: messages.Run,
  client: board_client.BoardClient,
  role: str,
  number: int = 0,
  num_envs: int = 1,
  process: str = "",
) -> recovery.RecoverableEnvironment:
  """Makes an environment of the run.

  Its failures are reported to the board, and so is a call that takes long.

  Args:
    make_environment: makes it, and its replacements.
    run: of the process.
    client: of the process.
    role: `TRAINING` or `EVALUATION`.
    number: index among those of the role.
    num_envs: of the role, in all processes.
    process: its name, for reports of failures.
  """
  earlier = _FAILURES * client.number

  def make_another(role: str, failures: int) -> dm_env.Environment:
    return make_environment(role, number + num_envs * (failures + earlier))

  def on_failure(failure: core.Failure) -> None:
    where = f"{failure.place} of {process}" if process else failure.place
    client.add(_portable(failure._replace(place=where)))

  with client.doing(WAITS):
    environment = make_another(role, 0)
  return recovery.RecoverableEnvironment(
    environment,
    role,
    make=make_another,
    max_failures=run.config.max_env_failures,
    on_failure=on_failure,
    watched=lambda: client.doing(WAITS),
  )


def _portable(failure: core.Failure) -> core.Failure:
  """A failure whose exception other processes can unpickle."""
  try:
    ray.cloudpickle.loads(ray.cloudpickle.dumps(failure))
  except Exception:
    return failure._replace(error=RuntimeError(errors.describe(failure.error)))
  return failure
