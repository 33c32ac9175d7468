"""The `distributed` runner: replay, learner, actors and evaluator as processes on Ray.

Acting and learning go on at the same time. A rate limit holds them together: after n
environment steps of all actors, the updates made are those that the local runner would
have made, but for a tolerance (`rates.Limits`). Nothing repeats to the bit: which actor
comes first is for the machine to say.
"""

import dm_env

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import ray_cluster
from explorax.experiments.distributed import driver, evaluator, messages
from explorax.experiments.distributed import layout as layout_lib
from explorax.experiments.runners import core, training

# For batches and rows on their way and for weights, of which a few versions are held.
_OBJECTS = 256 * 2**20  # Bytes.


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> core.Result:
  """Trains an agent.

  Episodes are reported as they end, with the number of their actor among the metrics;
  steps are counted over all actors. The evaluator takes the newest weights once it is
  free, so that an evaluation may be left out where it is slow. A run resumes from a
  checkpoint with each actor at the start of an episode.

  Args:
    agent: made for this environment's spec; what it is made of must be picklable by
      cloudpickle, as functions and dataclasses are.
    environment: only its spec matters; the actors make their own.
    config: all settings but `runner` and `num_seeds` are read.
    hooks: `make_environment` is required, and is called in the processes.
    evaluation_environment: None for no evaluation; the evaluator makes its own.

  Raises:
    errors.StoppedError: if a process fails for good.
    errors.SetUpError: if Ray cannot be reached.
    ValueError: if there is no limit, an evaluation of no steps or episodes, or a rate
      limit with which processes would wait for each other for ever.
  """
  del environment
  training.check(config, evaluation_environment)
  check(agent, config)
  if hooks.make_environment is None:
    raise ValueError("the distributed runner needs hooks.make_environment.")
  layout = make_layout(config)
  evaluates = evaluation_environment is not None

  def on_watched(watched: messages.Watched) -> None:
    if hooks.watcher is not None:
      evaluator.show(watched.tape, hooks.watcher)
    hooks.on_evaluation(watched.evaluation)

  with (
    ray_cluster.connect(
      config.ray_address,
      max(layout_lib.cores(), layout.num_processes(evaluates)),
      num_gpus=layout.learner_gpus,
      num_bytes=_OBJECTS,
    ),
    driver.running(
      agent,
      layout,
      seed=config.seed,
      replay=config.replay,
      make_environment=hooks.make_environment,
      remakes=config.max_env_failures > 0,
      max_env_failures=config.max_env_failures,
      num_episodes=config.episodes,
      num_steps=config.steps,
      evaluating=layout_lib.Evaluating(
        config.eval_every,
        config.eval_episodes,
        None if hooks.watcher is None else hooks.watcher.draws,
      )
      if evaluates
      else None,
      callbacks=driver.Callbacks(
        hooks.on_episode,
        on_watched,
        hooks.on_env_failure,
        hooks.on_message,
        hooks.on_processes,
        hooks.on_replacement,
        hooks.stop,
      ),
      checkpoints=hooks.checkpoints,
    ) as processes,
  ):
    return processes.wait()


def make_layout(config: config_lib.RunConfig) -> layout_lib.Layout:
  """How a run is spread over processes."""
  return layout_lib.Layout(
    num_actors=config.num_actors or 1,
    num_envs=config.num_envs or 1,
    num_shards=config.replay_shards or 1,
    variable_update_period=config.variable_update_period,
    error_buffer=config.error_buffer,
    learner_gpus=config.learner_gpus or 0,
    environment_timeout=config.environment_timeout or 300,
  )


def check(agent: types.Agent, config: config_lib.RunConfig) -> None:
  """Raises a ValueError if processes would wait for each other for ever."""
  make_layout(config).limits(agent.replay, agent.actor_update_period, None)
