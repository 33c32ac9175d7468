"""Acting and learning step by step, of many seeds in one program."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import dm_env
import jax
import jax.numpy as jnp

from explorax.environments import jax_types
from explorax.exploration import types as exploration_types
from explorax.papers.tabular import learners

# (the learner's state, the environment's parameters) → whether the run ends, bool `[]`.
Stop = Callable[[learners.State, jax_types.Params], jax.Array]


class Record(NamedTuple):
  """The result of a run, or of S."""

  returns: jax.Array  # Of each finished episode, float32 `[E]`; 0 beyond `episodes`.
  discounted_returns: jax.Array  # By the learner's γ.
  episodes: jax.Array  # Finished ones, int32 `[]`.
  steps: jax.Array  # Including those of an unfinished episode, int32 `[]`.
  stopped: jax.Array  # Whether `stop` ended the run, bool `[]`.
  learner: learners.State


class _Loop(NamedTuple):
  """The state between timesteps."""

  key: jax.Array  # For all later steps.
  state: jax_types.State
  now: dm_env.TimeStep  # Encoded by the learner.
  source: learners.Encoded  # The previous observation and action in the same episode.
  action: jax.Array
  rule: exploration_types.State
  weight: jax.Array  # γ to the power of the episode's steps so far.
  done: jax.Array  # Whether the run is over, bool `[]`.
  record: Record  # With the return of the current episode so far.


# Since 2024, XLA on a CPU launches each operation of a loop's body separately, which
# takes longer than the arithmetic of a tabular step. The former runtime, which later
# versions no longer have, compiles a loop into one function: with jax 0.4.34, seeds one
# after another are four times as fast as a batch.
_FORMER_RUNTIME: dict[str, str | bool] = {"xla_cpu_use_thunk_runtime": False}


def run(
  learner: learners.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  params: jax_types.Params | list[jax_types.Params],
  seeds: Sequence[int],
  **options: Any,
) -> Record:
  """Acts and learns; arrays of the record are `[S, ...]`.

  Args:
    learner: learns action values.
    rule: chooses actions with the learner's values.
    environment: an environment written in JAX.
    params: the environment's, or a list with one of each seed.
    seeds: each of which gives the same record beside any others.
    **options: `num_episodes`, E, at least 1; `max_steps`, after which a run ends, even
      within an episode; `stop`: a run ends after the first episode at whose end it is
      true.
  """
  shared, own = params, None
  if isinstance(params, list):
    shared, own = None, jax.tree.map(lambda *x: jnp.stack(x), *params)
  in_functions = jax.__version_info__[:2] == (0, 4) and jax.default_backend() == "cpu"
  sequential = learner.sequential or in_functions

  def run_all(shared: Any, own: Any, keys: jax.Array) -> Record:
    def run_one(one: tuple[jax.Array, Any]) -> Record:
      of_run = shared if own is None else one[1]
      return _run(learner, rule, environment, of_run, one[0], **options)

    each = keys, own
    return jax.lax.map(run_one, each) if sequential else jax.vmap(run_one)(each)

  key = jax.random.key(0)
  keys = jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.asarray(seeds))
  arrays = jax.tree.map(jnp.asarray, (shared, own, keys))
  program = jax.jit(run_all).lower(*arrays)
  record = program.compile(_FORMER_RUNTIME if in_functions else None)(*arrays)
  return cast(Record, record)


def _run(
  learner: learners.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  params: jax_types.Params,
  key: jax.Array,
  num_episodes: int,
  max_steps: int = learners.NEVER,
  stop: Stop | None = None,
) -> Record:
  """The run of a seed."""

  def encode(state: jax_types.State, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    encoded = learner.encode(state, timestep.observation)
    return timestep._replace(observation=encoded)

  def begin(key: jax.Array, rule_state: Any, steps: jax.Array) -> tuple[Any, Any, Any]:
    reset_key, rule_key = jax.random.split(key)
    state, timestep = environment.reset(reset_key, params)
    rule_state = rule.begin_episode(rule_key, rule_state, steps)
    return state, encode(state, timestep), rule_state

  def start() -> _Loop:
    loop_key, learner_key, rule_key, begin_key = jax.random.split(key, 4)
    rule_state = rule.init(rule_key, 1, environment.num_actions)
    none, zero, no = jnp.zeros(num_episodes), jnp.int32(0), jnp.bool_(False)
    state, now, rule_state = begin(begin_key, rule_state, zero)
    learner_state = learner.begin_episode(learner.init(learner_key))
    return _Loop(
      key=loop_key,
      state=state,
      now=now,
      source=now.observation,
      action=zero,
      rule=rule_state,
      weight=jnp.float32(1.0),
      done=no,
      record=Record(none, none, zero, zero, no, learner_state),
    )

  def act_and_learn(loop: _Loop, key: jax.Array) -> tuple[jax.Array, Any, Any]:
    """The action, and the learner's and the rule's states."""
    now, first, record = loop.now, loop.now.first(), loop.record
    rule_state = _where(first, loop.rule, rule.observe(now.reward, loop.rule))

    def choose(learner_state: learners.State) -> tuple[jax.Array, Any]:
      q = learner.q_values(learner_state, now.observation)[None]
      action, _, state = rule.select(key, q, rule_state, record.steps)
      return action, state

    def learn(next_action: jax.Array) -> learners.State:
      transition = learners.Transition(
        *(loop.source, loop.action, now.reward, now.discount),
        *(now.observation, next_action, ~(first | loop.done)),
      )
      return learner.update(record.learner, transition)

    if learner.on_policy:
      action, rule_state = choose(record.learner)
      return action, learn(action), rule_state
    learner_state = learn(jnp.int32(0))
    action, rule_state = choose(learner_state)
    return action, learner_state, rule_state

  def iterate(loop: _Loop) -> _Loop:
    """One iteration: a step, or a reset after an episode's last timestep."""
    loop_key, select_key, step_key, begin_key = jax.random.split(loop.key, 4)
    record, last = loop.record, loop.now.last()
    action, learner_state, rule_state = act_and_learn(loop, select_key)
    ended = last & ~loop.done
    learner_state = _where(ended, learner.begin_episode(learner_state), learner_state)
    episodes, stopped = record.episodes + ended, record.stopped
    if stop is not None:
      stopped |= ended & stop(learner_state, params)
    exhausted = record.steps >= max_steps
    done = loop.done | stopped | exhausted | (episodes >= num_episodes)
    state, timestep = environment.step(step_key, loop.state, action, params)
    # Results of a step after an episode's end are replaced, those of a run that has
    # ended are discarded.
    stepped = state, encode(state, timestep), rule_state
    state, now, rule_state = jax.lax.cond(
      jax_types.any_in_batch(last),
      lambda: _where(last, begin(begin_key, rule_state, record.steps), stepped),
      lambda: stepped,
    )
    moves = ~last & ~done
    reward = jnp.where(moves, timestep.reward, 0.0).astype(jnp.float32)
    discounted = loop.weight * reward
    return _Loop(
      key=loop_key,
      state=state,
      now=now,
      source=loop.now.observation,
      action=action,
      rule=rule_state,
      weight=jnp.where(last, 1.0, loop.weight * learner.discount).astype(jnp.float32),
      done=done,
      record=Record(
        record.returns.at[episodes].add(reward, mode="drop"),
        record.discounted_returns.at[episodes].add(discounted, mode="drop"),
        episodes,
        record.steps + moves,
        stopped,
        learner_state,
      ),
    )

  loop = jax.lax.while_loop(
    lambda loop: jax_types.any_in_batch(~loop.done), iterate, start()
  )
  record = loop.record
  finished = jnp.arange(num_episodes, dtype=jnp.int32) < record.episodes
  return record._replace(
    returns=jnp.where(finished, record.returns, 0.0),
    discounted_returns=jnp.where(finished, record.discounted_returns, 0.0),
  )


def _where(condition: jax.Array, one: Any, other: Any) -> Any:
  return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
