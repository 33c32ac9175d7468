"""The `distributed` runner: replay, learner, actors and evaluator as processes on Ray.

Acting and learning go on at the same time. A rate limit holds them together: after n
environment steps of all actors, the updates made are those that the local runner would
have made, but for a tolerance (`rates.Limits`). Nothing repeats to the bit: which actor
comes first is for the machine to say.
"""

from collections.abc import Callable, Mapping

import dm_env

from explorax.agents import types
from explorax.experiments import ray_cluster
from explorax.experiments.checkpoints import keeper
from explorax.experiments.distributed import actor_process, driver, evaluator, messages
from explorax.experiments.distributed import layout as layout_lib
from explorax.experiments.recording import console
from explorax.experiments.runners import evaluation, local, recovery

# For batches and rows on their way and for weights, of which a few versions are held.
_OBJECTS = 256 * 2**20  # Bytes.


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  *,
  make_environment: actor_process.MakeEnvironment,
  layout: layout_lib.Layout,
  ray_address: str | None = None,
  seed: int,
  replay: str = "reverb",
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[local.Episode], None] = lambda episode: None,
  stop: Callable[[], bool] = lambda: False,
  evaluation_environment: dm_env.Environment | None = None,
  eval_every: int | None = None,
  eval_episodes: int = 5,
  on_evaluation: Callable[[evaluation.Evaluation], None] = lambda done: None,
  watcher: evaluation.Watcher | None = None,
  remake_environment: recovery.Remake | None = None,
  max_env_failures: int = 3,
  on_env_failure: Callable[[recovery.Failure], None] = lambda failure: None,
  on_stall: Callable[[str], None] = console.complain,
  on_processes: Callable[[Mapping[str, int]], None] = lambda pids: None,
  on_replacement: Callable[[driver.Replacement], None] = lambda replaced: None,
  checkpoints: keeper.Keeper | None = None,
) -> local.Result:
  """Trains an agent; what is not told here is as in `local.run`.

  Args:
    agent: made for this environment's spec; what it is made of must be picklable by
      cloudpickle, as functions and dataclasses are.
    environment: tells nothing but that there is one; the actors make their own.
    make_environment: (`recovery.TRAINING` or `EVALUATION`, number) → an environment of
      a seed of its own. It is called in the processes that need one.
    layout: how many processes there are, and what holds them together.
    ray_address: of a cluster; None: Ray is started on this machine. A Ray that the
      process is connected to already is used as it is.
    seed: of the initialisation, and of acting.
    replay: `reverb` or `memory`, in processes of their own either way.
    num_episodes: stop after so many, those of all actors counted as they end.
    num_steps: stop after so many environment steps of all actors, to the step.
    on_episode: called at each episode's end, with the number of the actor among the
      metrics.
    stop: asked several times a second.
    evaluation_environment: None for no evaluation; the evaluator makes its own.
    eval_every: environment steps; the evaluator takes the newest weights once it is
      free, so that an evaluation may be left out where it is slow.
    eval_episodes: in each evaluation.
    on_evaluation: called with each of them.
    watcher: is shown the evaluation episodes once the evaluation is over.
    remake_environment: None: the first crash of an environment ends the run; else
      `make_environment` makes the next one.
    max_env_failures: how many crashes in a row of an actor's are recovered from.
    on_env_failure: called with each of those.
    on_stall: called with a sentence when a process has waited, or has not been heard
      of, for longer than the layout's patience.
    on_processes: called with role → pid (`learner`, `actor 0`) whenever they change.
    on_replacement: called when a process has the place of one that died.
    checkpoints: takes the run's state when one is due, and at its end; if it has found
      one, the run goes on from there, each actor at an episode's start.

  Raises:
    errors.StoppedError: if a process fails for good.
    errors.SetUpError: if Ray cannot be reached.
    ValueError: if there is no limit, an evaluation of no steps or episodes, or a rate
      limit with which processes would wait for each other for ever.
  """
  del environment
  local.check_limits(num_episodes, num_steps)
  local.check_evaluation(evaluation_environment, eval_every, eval_episodes)
  check(agent, layout)
  evaluates = evaluation_environment is not None

  def on_watched(watched: messages.Watched) -> None:
    if watcher is not None:
      evaluator.show(watched.tape, watcher)
    on_evaluation(watched.evaluation)

  with (
    ray_cluster.connect(
      ray_address,
      max(layout_lib.cores(), layout.num_processes(evaluates)),
      num_gpus=layout.learner_gpus,
      num_bytes=_OBJECTS,
    ),
    driver.running(
      agent,
      layout,
      seed=seed,
      replay=replay,
      make_environment=make_environment,
      remakes=remake_environment is not None,
      max_env_failures=max_env_failures,
      num_episodes=num_episodes,
      num_steps=num_steps,
      evaluating=layout_lib.Evaluating(
        eval_every, eval_episodes, None if watcher is None else watcher.draws
      )
      if evaluates
      else None,
      callbacks=driver.Callbacks(
        on_episode,
        on_watched,
        on_env_failure,
        on_stall,
        on_processes,
        on_replacement,
        stop,
      ),
      checkpoints=checkpoints,
    ) as processes,
  ):
    return processes.wait()


def check(agent: types.Agent, layout: layout_lib.Layout) -> None:
  """Raises a ValueError if processes would wait for each other for ever."""
  layout.limits(agent.replay, agent.actor_update_period, None)
