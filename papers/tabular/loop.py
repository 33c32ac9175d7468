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

_BLOCK = 64  # Timesteps between two updates of the records of all episodes.
_NEVER = jnp.iinfo(jnp.int32).max


class Record(NamedTuple):
  """The result of a run.

  Attributes:
    returns: float32 `[E]`, the sum of each finished episode's rewards; 0 beyond
      `episodes`, here and below.
    discounted_returns: float32 `[E]`, discounted by the learner's γ.
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
  learner: learners.State


class _Episode(NamedTuple):
  """An episode so far: its entries of `Record`, and γ to the power of its length."""

  total: jax.Array
  discounted: jax.Array
  length: jax.Array
  weight: jax.Array

  def extended(self, reward: jax.Array, discount: float) -> "_Episode":
    longer = _Episode(
      self.total + reward,
      self.discounted + self.weight * reward,
      self.length + 1,
      self.weight * discount,
    )
    # Rewards and discounts may be float64.
    return jax.tree.map(lambda x, like: x.astype(like.dtype), longer, self)


_NO_EPISODE = _Episode(jnp.float32(0.0), jnp.float32(0.0), jnp.int32(0), jnp.float32(1))


class _Loop(NamedTuple):
  """The state between timesteps.

  Attributes:
    key: a random key for all later steps.
    state, now: the environment's state and its timestep, encoded by the learner.
    source, action: the previous observation and action in the same episode.
    learner, rule: their states.
    episode: the current episode so far.
    episodes, steps, stopped: as in `Record`.
    visits: flat; `_NEVER` for cells without a visit.
    done: bool `[]`, whether the run is over.
  """

  key: jax.Array
  state: jax_types.State
  now: dm_env.TimeStep
  source: learners.Encoded
  action: jax.Array
  learner: learners.State
  rule: exploration_types.State
  episode: _Episode
  episodes: jax.Array
  steps: jax.Array
  stopped: jax.Array
  visits: jax.Array
  done: jax.Array


def run(
  learner: learners.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  params: jax_types.Params,
  key: jax.Array,
  *,
  num_episodes: int,
  max_steps: int = _NEVER - 1,
  stop: Stop | None = None,
  num_cells: int = 0,
  pairs: bool = False,
) -> Record:
  """Acts and learns until a limit of episodes or of steps is reached.

  The function is pure; `run_seeds` maps it over keys. A batch runs until all its runs
  have ended. The rule's schedules receive the run's number of steps.

  Args:
    learner: learns at every step.
    rule: chooses the actions from the learner's values.
    environment: an environment written in JAX.
    params: of the environment.
    key: a random key.
    num_episodes: E, at least 1.
    max_steps: after which the run ends, even within an episode.
    stop: the run ends after the first episode at whose end this is true.
    num_cells: C: records the first visits of the states [0, C), as the learner encodes
      them; 0 for none.
    pairs: records the first visits of (state, action) instead. A state counts as
      visited when the agent arrives, also at an episode's last timestep, and at step 0
      if it starts there; a pair after the action, at step 1 at the earliest.
  """
  num_actions = environment.num_actions

  def encode(state: jax_types.State, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    encoded = learner.encode(state, timestep.observation)
    return timestep._replace(observation=encoded)

  def begin(key: jax.Array, rule_state: Any, steps: jax.Array) -> tuple[Any, Any, Any]:
    reset_key, rule_key = jax.random.split(key)
    state, timestep = environment.reset(reset_key, params)
    rule_state = rule.begin_episode(rule_key, rule_state, steps)
    return state, encode(state, timestep), rule_state

  def visit(visits: jax.Array, index: Any, step: Any, counts: Any) -> jax.Array:
    if not num_cells:
      return visits
    here = (jnp.arange(visits.shape[0], dtype=jnp.int32) == index) & counts
    return jnp.where(here, jnp.minimum(visits, step), visits)

  def start() -> _Loop:
    loop_key, learner_key, rule_key, begin_key = jax.random.split(key, 4)
    zero = jnp.int32(0)
    state, now, rule_state = begin(begin_key, rule.init(rule_key, 1, num_actions), zero)
    visits = jnp.full((num_cells * (num_actions if pairs else 1),), _NEVER, jnp.int32)
    return _Loop(
      key=loop_key,
      state=state,
      now=now,
      source=now.observation,
      action=zero,
      learner=learner.begin_episode(learner.init(learner_key)),
      rule=rule_state,
      episode=_NO_EPISODE,
      episodes=zero,
      steps=zero,
      stopped=jnp.bool_(False),
      visits=visits if pairs else visit(visits, now.observation, zero, True),
      done=jnp.bool_(False),
    )

  def act_and_learn(loop: _Loop, key: jax.Array) -> tuple[jax.Array, Any, Any]:
    """The action, and the learner's and the rule's states."""
    now, first = loop.now, loop.now.first()
    rule_state = _where(first, loop.rule, rule.observe(now.reward, loop.rule))

    def choose(learner_state: learners.State) -> tuple[jax.Array, Any]:
      q = learner.q_values(learner_state, now.observation)[None]
      action, _, state = rule.select(key, q, rule_state, loop.steps)
      return action, state

    def learn(next_action: jax.Array) -> learners.State:
      transition = learners.Transition(
        *(loop.source, loop.action, now.reward, now.discount),
        *(now.observation, next_action, ~(first | loop.done)),
      )
      return learner.update(loop.learner, transition)

    if learner.on_policy:
      action, rule_state = choose(loop.learner)
      return action, learn(action), rule_state
    learner_state = learn(jnp.int32(0))
    action, rule_state = choose(learner_state)
    return action, learner_state, rule_state

  def iterate(loop: _Loop, _: None) -> tuple[_Loop, tuple[jax.Array, _Episode]]:
    """One iteration: a step, or a reset after an episode's last timestep.

    Also returns whether an episode ended, and its record.
    """
    loop_key, select_key, step_key, begin_key = jax.random.split(loop.key, 4)
    last, encoded = loop.now.last(), loop.now.observation
    action, learner_state, rule_state = act_and_learn(loop, select_key)
    ended = last & ~loop.done
    learner_state = _where(ended, learner.begin_episode(learner_state), learner_state)
    episodes, stopped = loop.episodes + ended, loop.stopped
    if stop is not None:
      stopped |= ended & stop(learner_state, params)
    exhausted = loop.steps >= max_steps
    done = loop.done | stopped | exhausted | (episodes >= num_episodes)
    state, timestep = environment.step(step_key, loop.state, action, params)
    # Results of a step after an episode's end are replaced, those of a run that has
    # ended are discarded.
    stepped = state, encode(state, timestep), rule_state
    state, now, rule_state = jax.lax.cond(
      jax_types.any_in_batch(last),
      lambda: _where(last, begin(begin_key, rule_state, loop.steps), stepped),
      lambda: stepped,
    )
    moves = ~last & ~done
    steps = loop.steps + moves
    index = encoded * num_actions + action if pairs else now.observation
    longer = loop.episode.extended(timestep.reward, learner.discount)
    later = _Loop(
      key=loop_key,
      state=state,
      now=now,
      source=encoded,
      action=action,
      learner=learner_state,
      rule=rule_state,
      episode=_where(last, _NO_EPISODE, longer),
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

    def add(past: jax.Array, new: jax.Array) -> jax.Array:
      return jax.lax.dynamic_update_slice(past, new[order], (loop.episodes,))

    return following, jax.tree.map(add, finished, episodes)

  room = num_episodes + _BLOCK
  loop, finished = jax.lax.while_loop(
    lambda carry: jax_types.any_in_batch(~carry[0].done),
    iterate_block,
    (start(), jax.tree.map(lambda x: jnp.zeros(room, x.dtype), _NO_EPISODE)),
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


# Since 2024, XLA on a CPU launches each operation of a loop's body separately, which
# takes longer than the arithmetic of a tabular step. The former runtime, which later
# versions no longer have, compiles a loop into one function: with jax 0.4.34, seeds one
# after another are four times as fast as a batch.
_FORMER_RUNTIME: dict[str, str | bool] = {"xla_cpu_use_thunk_runtime": False}


def run_seeds(
  learner: learners.Learner,
  rule: exploration_types.Rule,
  environment: jax_types.Environment,
  params: jax_types.Params | list[jax_types.Params],
  seeds: Sequence[int],
  **options: Any,
) -> Record:
  """Compiles `run`, and runs it for each seed; arrays of the record are `[S, ...]`.

  Args:
    learner, rule, environment: as in `run`.
    params: the environment's, or a list with those of each seed.
    seeds: each of which gives the same record beside any others.
    **options: the other arguments of `run`.
  """
  shared, own = params, None
  if isinstance(params, list):
    shared, own = None, jax.tree.map(lambda *x: jnp.stack(x), *params)
  in_functions = jax.__version_info__[:2] == (0, 4) and jax.default_backend() == "cpu"
  sequential = learner.sequential or in_functions

  def run_all(shared: Any, own: Any, keys: jax.Array) -> Record:
    def run_one(one: tuple[jax.Array, Any]) -> Record:
      of_run = shared if own is None else one[1]
      return run(learner, rule, environment, of_run, one[0], **options)

    each = keys, own
    return jax.lax.map(run_one, each) if sequential else jax.vmap(run_one)(each)

  key = jax.random.key(0)
  keys = jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.asarray(seeds))
  arrays = jax.tree.map(jnp.asarray, (shared, own, keys))
  program = jax.jit(run_all).lower(*arrays)
  record = program.compile(_FORMER_RUNTIME if in_functions else None)(*arrays)
  return cast(Record, record)
