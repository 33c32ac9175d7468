"""Runs of a small learner: acting and learning step by step, in one jitted loop."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax.environments import jax_types
from explorax.exploration import types as exploration_types
from explorax.papers.tabular import types

# (the environment's state, its observation) → a value computed from them.
Reading = Callable[[jax_types.State, jax.Array], jax.Array]
# (the learner's state, the environment's parameters) → whether the run ends, bool `[]`.
Stop = Callable[[types.State, jax_types.Params], jax.Array]

_BLOCK = 64  # Timesteps between two updates of the records of all episodes.
_NEVER = jnp.iinfo(jnp.int32).max


class Record(NamedTuple):
  """The result of a run.

  Attributes:
    returns: float32 `[E]`, the sum of each finished episode's rewards; 0 beyond
      `episodes`, here and below.
    discounted_returns: float32 `[E]`, discounted from the episode's start by the
      learner's γ.
    lengths: int32 `[E]`, steps.
    episodes: int32 `[]`, the number of finished episodes.
    steps: int32 `[]`, all steps taken, including those of an unfinished episode.
    stopped: bool `[]`, whether `stop` ended the run.
    first_visits: int32 `[C]`, or `[C, A]` for pairs; `steps` if there was none.
    visited: bool, the same shape.
    learner: the learner's last state.
  """

  returns: jax.Array
  discounted_returns: jax.Array
  lengths: jax.Array
  episodes: jax.Array
  steps: jax.Array
  stopped: jax.Array
  first_visits: jax.Array
  visited: jax.Array
  learner: types.State


class _Episode(NamedTuple):
  """An episode so far: its entries of `Record`, and γ to the power of its length."""

  total: jax.Array
  discounted: jax.Array
  length: jax.Array
  weight: jax.Array


class _Arrival(NamedTuple):
  """A timestep and its cell.

  Attributes:
    state: the environment's.
    timestep: its observation as the learner encodes it.
    cell: int32 `[]`.
  """

  state: jax_types.State
  timestep: dm_env.TimeStep
  cell: jax.Array


class _Loop(NamedTuple):
  """The state between timesteps.

  Attributes:
    key: a random key for all later steps.
    now: the latest timestep.
    source, action: the previous observation and action in the same episode.
    learner, rule: their states.
    episode: the current episode so far.
    episodes, steps, stopped, visits: as in `Record`; `visits` is flat, and `_NEVER`
      for cells without a visit.
    done: bool `[]`, whether the run is over.
  """

  key: jax.Array
  now: _Arrival
  source: types.Encoded
  action: jax.Array
  learner: types.State
  rule: exploration_types.State
  episode: _Episode
  episodes: jax.Array
  steps: jax.Array
  stopped: jax.Array
  visits: jax.Array
  done: jax.Array


def run(
  learner: types.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  learner_params: types.Params,
  environment_params: jax_types.Params,
  key: jax.Array,
  *,
  num_episodes: int,
  max_steps: jax.Array | int = _NEVER - 1,
  stop: Stop | None = None,
  observe: Reading | None = None,
  cell: Reading | None = None,
  num_cells: int = 0,
  pairs: bool = False,
) -> Record:
  """Acts and learns until a limit of episodes or of steps is reached.

  The function is pure: it can be jitted, and vmapped over keys and parameters
  (`run_seeds` does both for keys). A batch runs until all its runs have ended. The
  rule's schedules receive the run's number of steps.

  Args:
    learner: learns at every step.
    rule: chooses the actions from the values of all the learner's members.
    environment: an environment written in JAX.
    learner_params: of the learner; `discount` also discounts the recorded returns.
    environment_params: of the environment.
    key: a random key, of either kind of jax.
    num_episodes: E, at least 1; static.
    max_steps: steps after which the run ends, even within an episode; below 2³¹ − 1.
    stop: the run ends after the first episode at whose end this is true.
    observe: computes the learner's input from the environment's state and observation;
      the observation by default. A tabular learner is faster with the state's index
      than with a one-hot position.
    cell: computes an index, int32 `[]`, from the environment's state and observation.
      The run records the first visits of the cells [0, num_cells), and ignores others.
    num_cells: C; static.
    pairs: record the first visits of (cell, action) instead. A cell counts as visited
      when the agent arrives, also at an episode's last timestep, and at step 0 if it
      starts there; a pair after the action, at step 1 at the earliest.

  Raises:
    ValueError: if `num_episodes` is below 1, or `cell`, `num_cells` and `pairs` do
      not go together.
  """
  if num_episodes < 1:
    raise ValueError(f"num_episodes is {num_episodes}; a run has at least 1.")
  if (cell is None) != (num_cells == 0) or num_cells < 0 or (pairs and cell is None):
    raise ValueError(
      f"num_cells is {num_cells}, pairs {pairs}, and there is "
      f"{'no' if cell is None else 'a'} function `cell`; to record first visits, of "
      "cells or of pairs, give `cell` and num_cells, and neither otherwise."
    )
  num_actions = environment.num_actions

  def arrive(state: jax_types.State, timestep: dm_env.TimeStep) -> _Arrival:
    seen = timestep.observation
    encoded = learner.encode(seen if observe is None else observe(state, seen))
    index = jnp.int32(0) if cell is None else jnp.asarray(cell(state, seen))
    return _Arrival(state, timestep._replace(observation=encoded), index)

  def begin(key: jax.Array, rule_state: Any, steps: jax.Array) -> tuple[_Arrival, Any]:
    reset_key, rule_key = jax.random.split(key)
    arrival = arrive(*environment.reset(reset_key, environment_params))
    return arrival, rule.begin_episode(rule_key, rule_state, steps)

  def visit(
    visits: jax.Array, index: jax.Array, step: jax.Array, counts: bool | jax.Array
  ) -> jax.Array:
    if cell is None:
      return visits
    here = (jnp.arange(visits.shape[0], dtype=jnp.int32) == index) & counts
    return jnp.where(here, jnp.minimum(visits, step), visits)

  def start() -> _Loop:
    loop_key, learner_key, rule_key, begin_key = jax.random.split(key, 4)
    zero = jnp.int32(0)
    rule_state = rule.init(rule_key, learner.num_members, num_actions)
    now, rule_state = begin(begin_key, rule_state, zero)
    visits = jnp.full((num_cells * (num_actions if pairs else 1),), _NEVER, jnp.int32)
    return _Loop(
      key=loop_key,
      now=now,
      source=now.timestep.observation,
      action=zero,
      learner=learner.begin_episode(learner.init(learner_key, learner_params)),
      rule=rule_state,
      episode=_no_episode(),
      episodes=zero,
      steps=zero,
      stopped=jnp.bool_(False),
      visits=visits if pairs else visit(visits, now.cell, zero, True),
      done=jnp.bool_(False),
    )

  def iterate(loop: _Loop, _: None) -> tuple[_Loop, tuple[jax.Array, _Episode]]:
    """One iteration: a step, or a reset after an episode's last timestep.

    Also returns whether an episode ended, and its record.
    """
    now = loop.now.timestep
    first, last, encoded = now.first(), now.last(), now.observation
    loop_key, select_key, step_key, begin_key = jax.random.split(loop.key, 4)
    rule_state = _where(first, loop.rule, rule.observe(now.reward, loop.rule))

    def choose(learner_state: types.State) -> tuple[jax.Array, Any]:
      q = learner.q_values(learner_state, encoded)
      action, _, state = rule.select(select_key, q, rule_state, loop.steps)
      return action, state

    def learn(next_action: jax.Array) -> types.State:
      transition = types.Transition(
        loop.source,
        loop.action,
        now.reward,
        now.discount,
        encoded,
        next_action,
        ~(first | loop.done),
      )
      return learner.update(loop.learner, transition)

    if learner.on_policy:
      action, rule_state = choose(loop.learner)
      learner_state = learn(action)
    else:
      learner_state = learn(jnp.int32(0))
      action, rule_state = choose(learner_state)

    ended = last & ~loop.done
    learner_state = _where(ended, learner.begin_episode(learner_state), learner_state)
    episodes = loop.episodes + ended
    stopped = loop.stopped
    if stop is not None:
      stopped |= ended & stop(learner_state, environment_params)
    exhausted = loop.steps >= max_steps
    done = loop.done | stopped | exhausted | (episodes >= num_episodes)

    stepped = arrive(
      *environment.step(step_key, loop.now.state, action, environment_params)
    )
    # Results of a step after an episode's end are replaced, those of a run that has
    # ended are discarded.
    following, rule_state = jax.lax.cond(
      jax_types.any_in_batch(last),
      lambda: _where(
        last, begin(begin_key, rule_state, loop.steps), (stepped, rule_state)
      ),
      lambda: (stepped, rule_state),
    )
    moves = ~last & ~done
    steps = loop.steps + moves
    index = loop.now.cell * num_actions + action if pairs else following.cell
    later = _Loop(
      key=loop_key,
      now=following,
      source=encoded,
      action=action,
      learner=learner_state,
      rule=rule_state,
      episode=_where(
        last,
        _no_episode(),
        _extend(loop.episode, stepped.timestep.reward, learner_params.discount),
      ),
      episodes=episodes,
      steps=steps,
      stopped=stopped,
      visits=visit(loop.visits, index, steps, moves if pairs else ~done),
      done=done,
    )
    return later, (ended, loop.episode)

  def iterate_block(carry: tuple[_Loop, _Episode]) -> tuple[_Loop, _Episode]:
    loop, finished = carry
    following, (ended, episodes) = jax.lax.scan(iterate, loop, None, _BLOCK)
    # Ended episodes come first, in order; the next block overwrites the others.
    order = jnp.argsort(~ended, stable=True)
    finished = jax.tree.map(
      lambda past, new: jax.lax.dynamic_update_slice(
        past, new[order], (loop.episodes,)
      ),
      finished,
      episodes,
    )
    return following, finished

  room = num_episodes + _BLOCK
  loop, finished = jax.lax.while_loop(
    lambda carry: jax_types.any_in_batch(~carry[0].done),
    iterate_block,
    (start(), jax.tree.map(lambda x: jnp.zeros(room, x.dtype), _no_episode())),
  )
  there = jnp.arange(num_episodes, dtype=jnp.int32) < loop.episodes
  finished = jax.tree.map(lambda x: jnp.where(there, x[:num_episodes], 0), finished)
  visits = loop.visits.reshape((num_cells, num_actions) if pairs else (num_cells,))
  return Record(
    returns=finished.total,
    discounted_returns=finished.discounted,
    lengths=finished.length,
    episodes=loop.episodes,
    steps=loop.steps,
    stopped=loop.stopped,
    first_visits=jnp.where(visits == _NEVER, loop.steps, visits),
    visited=visits != _NEVER,
    learner=loop.learner,
  )


def _where(condition: jax.Array, one: Any, other: Any) -> Any:
  return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def _no_episode() -> _Episode:
  zero = jnp.float32(0.0)
  return _Episode(zero, zero, jnp.int32(0), jnp.float32(1.0))


def _extend(
  episode: _Episode, reward: jax.Array, discount: jax.Array | float
) -> _Episode:
  longer = _Episode(
    episode.total + reward,
    episode.discounted + episode.weight * reward,
    episode.length + 1,
    episode.weight * discount,
  )
  # Rewards and discounts may be float64.
  return jax.tree.map(lambda x, like: x.astype(like.dtype), longer, episode)


# Since 2024, XLA on a CPU launches each operation of a loop's body separately, which
# takes longer than the arithmetic of a tabular step. The former runtime compiles a loop
# into one function: with jax 0.4.34, one run is 20 times as fast, and sequential runs
# are 4 times as fast as a batch. Later versions of XLA no longer have this runtime.
_HAS_FORMER_RUNTIME = jax.__version_info__[:2] == (0, 4)
_FORMER_RUNTIME: dict[str, str | bool] = {"xla_cpu_use_thunk_runtime": False}


def run_seeds(
  learner: types.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  learner_params: types.Params,
  environment_params: jax_types.Params,
  keys: jax.Array,
  *,
  num_episodes: int,
  max_steps: jax.Array | int = _NEVER - 1,
  sequential: bool | None = None,
  environment_per_seed: bool = False,
  **options: Any,
) -> Record:
  """Compiles `run` and runs it for each key; arrays of the record are `[S, …]`.

  New values of the parameters, keys and `max_steps` do not recompile; changes of other
  arguments do. Pass `stop`, `observe` and `cell` as module-level functions, not as new
  lambdas.

  Args:
    learner, rule, environment, learner_params, environment_params: as in `run`.
    keys: typed keys `[S]`, or jax's older keys `[S, 2]`.
    num_episodes, max_steps: as in `run`.
    sequential: run the seeds one after another instead of as a batch. This is faster
      if expensive work is rare, as in `RMax`. None: sequential on a CPU where XLA
      compiles loops as functions, and otherwise a batch.
    environment_per_seed: each seed has its own environment: all arrays of
      `environment_params` are `[S, …]`, in the order of the keys.
    **options: the other arguments of `run`.
  """
  on_cpu = jax.default_backend() == "cpu"
  in_functions = _HAS_FORMER_RUNTIME and on_cpu and sequential is not False
  arrays = jax.tree.map(
    jnp.asarray, (learner_params, environment_params, keys, max_steps)
  )
  leaves, structure = jax.tree.flatten(arrays)
  program = _compile(
    (learner, rule, environment),
    tuple({"num_episodes": num_episodes, **options}.items()),
    bool(sequential) or in_functions,
    environment_per_seed,
    in_functions,
    structure,
    tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves),
  )
  return program(*arrays)


@functools.lru_cache(maxsize=64)
def _compile(
  parts: tuple[types.Learner, exploration_types.Rule, jax_types.Environment],
  options: tuple[tuple[str, Any], ...],
  sequential: bool,
  environment_per_seed: bool,
  in_functions: bool,
  structure: Any,
  leaves: tuple[jax.ShapeDtypeStruct, ...],
) -> Callable[..., Record]:
  """The compiled program of `run_seeds` for arrays of these shapes."""
  function = jax.jit(_of_seeds(parts, dict(options), sequential, environment_per_seed))
  lowered = function.lower(*jax.tree.unflatten(structure, leaves))
  return lowered.compile(_FORMER_RUNTIME if in_functions else None)


def _of_seeds(
  parts: tuple[types.Learner, exploration_types.Rule, jax_types.Environment],
  options: dict[str, Any],
  sequential: bool,
  environment_per_seed: bool,
) -> Callable[..., Record]:
  """The function of all arrays that `run_seeds` compiles."""

  def run_all(
    learner_params: Any,
    environment_params: jax_types.Params,
    keys: jax.Array,
    max_steps: jax.Array,
  ) -> Record:
    def run_one(key: jax.Array, own_params: jax_types.Params) -> Record:
      params = own_params if environment_per_seed else environment_params
      return run(
        *parts,
        learner_params,
        params,
        key,
        max_steps=max_steps,
        **options,
      )

    each = (keys, environment_params if environment_per_seed else ())
    if sequential:
      return jax.lax.map(lambda one: run_one(*one), each)
    return jax.vmap(run_one)(*each)

  return run_all
