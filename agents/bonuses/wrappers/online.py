"""A bonus of N environments that is learnt while they are stepped.

It is for agents of other libraries: `gymnasium_wrapper` and `sb3_wrapper` add it to the
rewards. A loop with environments of another kind calls it itself: `begin` with the
first observations, then `step` with actions, the observations reached and which
episodes ended, and `begin` again for the environments that were reset.
"""

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents import updates
from explorax.agents.bonuses import types
from explorax.agents.bonuses.wrappers import observations as observations_lib
from explorax.exploration import schedules

# Numbers are clipped to so many times the largest one so far, which is at least 1.
_LARGEST_RISE = 10.0


class Learnt(NamedTuple):
  """What `save` writes.

  Attributes:
    learner: the learner's state of both halves.
    acting: the acting half's state, of all environments or, if it is of an episode, one
      for each, `[N, ...]`.
    moments: of r_int.
    largest: the largest absolute value in an observation, float32 `[]`.
    steps: environment steps so far, of all environments.
    updates: of the learner, so far.
  """

  learner: types.LearnerState
  acting: Any
  moments: exploration.Moments
  largest: Any
  steps: Any
  updates: Any


class Steps(NamedTuple):
  """One step of each environment.

  Attributes:
    rows: observations before and after it, encoded, `[N, 2, ...]`.
    action: int32 `[N]`.
    done: bool `[N]`.
    valid: bool `[N]`, whether the environment has taken the step.
    pays: bool `[N]`, whether r_int counts; it is 0 otherwise.
  """

  rows: Any
  action: Any
  done: Any
  valid: Any
  pays: Any


class OnlineBonus:
  """r_int of the steps of N environments, in one compiled call.

  All environments share the networks, their optimizers and the running statistics of
  the learning half. When there are `update_period · N` new transitions, both halves are
  updated on them; r_int of a learning half is 0 before the first update, when its
  statistics would be of a few values. The environments also share what an acting half
  keeps over all episodes (its `begin_episode` is None: the tables of `Counts` and
  `SimHash`, the density of `PseudoCounts`, the memory of `RE3`), in the order of the
  environments. Each environment has what belongs to its episode: visits, memory,
  ellipsoid; with these, the moments of `NeverGiveUp`, and the φ of `E3B` and
  `NeverGiveUp`, which an episode keeps as it began: N copies.

  Where an episode has ended and `begin` is not called, the environment resets itself:
  the next step's action is ignored, and what it reaches is a first observation.

  Observations that are not finite are refused. Numbers beyond ten times the largest one
  so far (at least 1) are clipped to that, so that a single one does not end the
  statistics.

  Bonuses of an agent's values (`tdu`, `qu`, `infogain`, `td_error`) need the agent, and
  are refused. Where actions are not discrete, a bonus sees all of them as one: counts
  are of states then, and `NeverGiveUp` needs states other than `learned`.
  """

  def __init__(
    self,
    bonus: types.Bonus,
    observation_space: gymnasium.Space,
    action_space: gymnasium.Space,
    num_envs: int = 1,
    *,
    beta: exploration.Setting = 1.0,
    normalise: bool = False,
    seed: int = 0,
    update_period: int = 8,
    view: str | None = None,
    env: gymnasium.Env | None = None,
  ):
    """The bonus before the first step.

    Args:
      bonus: settings of a bonus, as `counts.Counts()`, `rnd.RND()` or
        `ngu.NeverGiveUp(states="random", rnd=False)`, which is episodic novelty alone.
      observation_space: of one environment, one array or discrete.
      action_space: of one environment.
      num_envs: N.
      beta: β, a number or a schedule, whose time is in steps of all environments.
      normalise: whether to divide r_int by its deviation over all steps so far; 0 while
        all have been equal. The mean is not subtracted.
      seed: of the bonus's networks.
      update_period: steps of the vector between two updates.
      view: `minigrid`, whose numbers are names of kinds, or `array`; None: `env` says.
      env: one of the environments, if it is in this process.

    Raises:
      ValueError: if the bonus cannot take the observations, if they may be MiniGrid's
        and neither `view` nor `env` says so, or if `update_period` is below 1.
      TypeError: if the observations are no single array, or the bonus needs an agent.
      RuntimeError: in a process that was forked after JAX had run.
    """
    if _first_process() != os.getpid():
      raise RuntimeError(
        "a bonus cannot be computed in a process that was forked after JAX had run, "
        'because JAX hangs there; start processes with context="spawn", or put one '
        "wrapper around the vector of environments."
      )
    if update_period < 1:
      raise ValueError(f"update_period is {update_period}; it must be at least 1.")
    spec, self._encode = observations_lib.make_encoding(observation_space, view, env)
    self._first_action, num_actions = None, 1
    if isinstance(action_space, gymnasium.spaces.Discrete):
      self._first_action, num_actions = int(action_space.start), int(action_space.n)
    self._bonus = bonus.build(spec, num_actions)
    learning = self._bonus.learning
    if learning is not None and learning.needs_values_only:
      raise TypeError(
        f"{type(bonus).__name__} is a bonus of an agent's values, which are not known "
        "here; use one of observations, as counts.Counts, rnd.RND or ngu.NeverGiveUp."
      )
    self._num_envs, self._beta, self._normalise = num_envs, beta, normalise
    self._begin = jax.jit(self._begin_episodes, donate_argnums=(1, 2))
    self._advance = jax.jit(self._compute, static_argnums=5, donate_argnums=1)
    self._learn = jax.jit(self._update, donate_argnums=0)
    self._beta_at = jax.jit(functools.partial(schedules.at, beta))
    acting = self._bonus.acting
    self._has_episodes = acting is not None and acting.begin_episode is not None
    self._training = None if acting is None else acting.training
    learns = self._training is not None or self._bonus.learning is not None
    self._batch_size = update_period * num_envs if learns else 0
    self._learnt = jax.jit(self._init)(jax.random.PRNGKey(seed))
    self._held = self._initial_weights()
    self._ended = np.ones(num_envs, bool)
    self._observation = np.zeros((num_envs, *spec.shape), spec.dtype)
    # Rows, actions and stored values of steps that have not been learnt from.
    self._pending: list[list[np.ndarray]] = []

  @property
  def beta(self) -> float:
    """β of the next step."""
    if isinstance(self._beta, schedules.Schedule):
      return float(self._beta_at(self._learnt.steps))
    return self._beta

  @property
  def ended(self) -> np.ndarray:
    """bool `[N]`: where no episode is running."""
    return self._ended.copy()

  def begin(self, observations: Any, mask: np.ndarray | None = None) -> None:
    """Starts episodes.

    Args:
      observations: `[N, ...]`, the first ones of the episodes.
      mask: bool `[N]`, the environments in which an episode starts; None: all.

    Raises:
      ValueError: if an observation is not finite, with the environment's number.
    """
    mask = np.ones(self._num_envs, bool) if mask is None else np.asarray(mask, bool)
    if mask.any():
      self._start(self._encoded(observations, mask), mask)

  def step(
    self, actions: Any, next_observations: Any, done: Any
  ) -> tuple[np.ndarray, np.ndarray]:
    """Computes the bonus of one step of each environment, and keeps it to learn from.

    Args:
      actions: `[N, ...]`, those taken.
      next_observations: `[N, ...]`, those reached; at an episode's end its last one,
        not the first of the next.
      done: bool `[N]`, whether the episode ended, for whatever reason.

    Returns:
      β r_int and r_int, float32 `[N]`; 0 where an environment has reset itself.

    Raises:
      ValueError: if an observation is not finite, with the environment's number.
    """
    beta, r_int = self.beta, np.zeros(self._num_envs, np.float32)
    reached = self._encoded(next_observations, np.ones(self._num_envs, bool))
    begins = self._ended.copy()
    if not begins.all():
      r_int = self._step(self._indices(actions), reached, np.asarray(done, bool))
    if begins.any():
      self._start(reached, begins)
    return np.asarray(beta * r_int, np.float32), r_int

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes what has been learnt to an `.npz` file: one tree, without pickle."""
    leaves = jax.tree.leaves(self._learnt)
    with open(path, "wb") as file:
      np.savez(file, *map(np.asarray, leaves))

  def load(self, path: str | os.PathLike[str]) -> None:
    """Restores what `save` wrote, for any number of environments; episodes begin.

    Where each environment has a state, environment i gets that of the file's i mod N.

    Raises:
      ValueError: if the file is of another bonus or of other observations.
    """
    with np.load(path, allow_pickle=False) as file:
      leaves = list(file.values())
    expected, structure = jax.tree.flatten(self._learnt)
    if len(leaves) == len(expected):
      learnt = jax.tree.unflatten(structure, leaves)
      if self._has_episodes:
        envs = np.arange(self._num_envs)
        acting = jax.tree.map(lambda x: x[envs % len(x)], learnt.acting)
        learnt = learnt._replace(acting=acting)
      leaves = jax.tree.leaves(learnt)
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for x in expected]:
      raise ValueError(f"{path} is of another bonus, or of other observations.")
    # Arrays of the device, which may be donated: those of the host are only borrowed.
    leaves = [jnp.array(x, copy=True) for x in leaves]
    self._learnt = jax.tree.unflatten(structure, leaves)
    self._held = self._initial_weights()
    self._ended[:] = True
    self._pending = []

  def _encoded(self, observations: Any, mask: np.ndarray) -> np.ndarray:
    """Encoded observations `[N, ...]`; outside of the mask, the current ones."""
    encoded = self._observation.copy()
    observation_of = observations_lib.unbatched(observations, self._num_envs)
    for i in np.flatnonzero(mask):
      with np.errstate(over="ignore"):
        encoded[i] = self._encode(observation_of[i])
      observations_lib.check_finite(i, encoded[i])
    if encoded.dtype != np.float32:
      return encoded
    largest = np.asarray(self._learnt.largest)
    if largest > 0:
      limit = _LARGEST_RISE * max(1.0, float(largest))
      encoded = np.clip(encoded, -limit, limit)
    largest = np.maximum(largest, np.max(np.abs(encoded), initial=0.0))
    self._learnt = self._learnt._replace(largest=largest)
    return encoded

  def _indices(self, actions: Iterable[Any]) -> np.ndarray:
    if self._first_action is None:
      return np.zeros(self._num_envs, np.int32)
    return np.asarray(actions).astype(np.int32) - np.int32(self._first_action)

  def _start(self, observations: np.ndarray, begins: np.ndarray) -> None:
    """Starts episodes with encoded observations."""
    if self._bonus.acting is not None:
      learner, acting, *_ = self._learnt
      acting, self._held = self._begin(
        learner, acting, self._held, observations, begins
      )
      self._learnt = self._learnt._replace(acting=acting)
    self._observation = _where(begins, observations, self._observation)
    self._ended &= ~begins

  def _step(
    self, action: np.ndarray, reached: np.ndarray, done: np.ndarray
  ) -> np.ndarray:
    """r_int of the steps, which are learnt from."""
    learnt = self._learnt
    rows = np.stack([self._observation, reached], axis=1)
    has_learnt = self._bonus.learning is None or int(learnt.updates) > 0
    valid = ~self._ended
    steps = Steps(rows, action, done, valid, valid & has_learnt)
    r_int, stored, acting, moments = self._advance(
      learnt.learner,
      learnt.acting,
      self._held,
      learnt.moments,
      steps,
      bool(valid.all()),
    )
    total = learnt.steps + np.sum(valid, dtype=np.int32)
    self._learnt = learnt._replace(acting=acting, moments=moments, steps=total)
    if self._batch_size:
      self._collect(steps, np.asarray(stored))
    self._observation = _where(valid, reached, self._observation)
    self._ended |= valid & done
    return np.asarray(r_int)

  def _collect(self, steps: Steps, stored: np.ndarray) -> None:
    """Adds valid transitions to the rows, and learns when they make a batch."""
    size, valid = self._batch_size, steps.valid
    self._pending.append([x[valid] for x in (steps.rows, steps.action, stored)])
    if sum(len(rows) for rows, *_ in self._pending) >= size:
      columns = [np.concatenate(column) for column in zip(*self._pending, strict=True)]
      batch = [column[:size] for column in columns]
      self._pending = [[column[size:] for column in columns]]
      self._learnt = self._learnt._replace(
        learner=self._learn(self._learnt.learner, *batch),
        updates=self._learnt.updates + np.int32(1),
      )

  def _init(self, key: jax.Array) -> Learnt:
    acting = () if self._bonus.acting is None else self._bonus.acting.init()
    return Learnt(
      learner=self._bonus.init(key),
      acting=self._for_each(acting) if self._has_episodes else acting,
      moments=exploration.init_moments(),
      largest=jnp.float32(0),
      steps=jnp.int32(0),
      updates=jnp.int32(0),
    )

  def _initial_weights(self) -> Any:
    """Those that each environment's episode keeps, `[N, ...]`; `()` without them."""
    acting = self._bonus.acting
    if acting is None or acting.training is None or acting.refresh is None:
      return ()
    return self._for_each(acting.training.weights(self._learnt.learner.training))

  def _for_each(self, tree: Any) -> Any:
    """Copies of it, `[N, ...]`."""
    n = self._num_envs
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)

  def _over_environments(
    self, function: Callable[..., tuple[Any, Any]], acting_state: Any, *args: Any
  ) -> tuple[Any, Any]:
    """(acting half's state, arguments of one environment) → (state, result), of all."""
    if self._has_episodes:
      return jax.vmap(function)(acting_state, *args)
    return jax.lax.scan(lambda state, x: function(state, *x), acting_state, args)

  def _begin_episodes(
    self,
    learner: types.LearnerState,
    acting_state: Any,
    held: Any,
    observations: jax.Array,
    begins: jax.Array,
  ) -> tuple[Any, Any]:
    """The acting half's state, and the weights that episodes keep."""
    acting = self._bonus.acting
    assert acting is not None
    fresh = acting.training.weights(learner.training) if acting.training else ()

    def start(state: Any, observation: jax.Array) -> Any:
      if acting.begin_episode is not None:
        state = acting.begin_episode(state)
      if self._bonus.end == "destination":  # The first value belongs to no step.
        no_action, is_last = jnp.int32(0), jnp.bool_(False)
        _, state = acting.observe(fresh, state, observation, no_action, is_last)
      return state

    def one(
      state: Any, held: Any, observation: jax.Array, begins: jax.Array
    ) -> tuple[Any, Any]:
      state = jax.lax.cond(begins, start, lambda old, _: old, state, observation)
      if acting.refresh is not None:
        held = updates.select_tree(begins, fresh, held)
      return state, held

    return self._over_environments(one, acting_state, held, observations, begins)

  def _compute(
    self,
    learner: types.LearnerState,
    acting_state: Any,
    held: Any,
    moments: exploration.Moments,
    steps: Steps,
    all_valid: bool,
  ) -> tuple[jax.Array, jax.Array, Any, exploration.Moments]:
    """r_int `[N]`, the acting half's values `[N]`, its state, and the moments."""
    r_int = stored = jnp.zeros(self._num_envs, jnp.float32)
    if self._bonus.acting is not None:
      acting_state, stored = self._act(learner, acting_state, held, steps, all_valid)
      r_int = stored
    if self._bonus.learning is not None:
      r_int, _ = self._learning(learner, steps.rows, steps.action, stored, steps.valid)
    if self._normalise:
      moments = exploration.update_moments(moments, r_int, steps.pays)
      r_int = exploration.over_deviation(moments, r_int)
    return jnp.where(steps.pays, r_int, 0.0), stored, acting_state, moments

  def _act(
    self,
    learner: types.LearnerState,
    acting_state: Any,
    held: Any,
    steps: Steps,
    all_valid: bool,
  ) -> tuple[Any, jax.Array]:
    """The acting half's state, and its values `[N]`."""
    acting, arrives = self._bonus.acting, self._bonus.end == "destination"
    assert acting is not None
    fresh = acting.training.weights(learner.training) if acting.training else ()

    def one(state: Any, held: Any, step: Steps) -> tuple[Any, jax.Array]:
      weights = fresh if acting.refresh is None else acting.refresh(held, fresh)
      seen, last = step.rows[int(arrives)], step.done & arrives
      value, new = acting.observe(weights, state, seen, step.action, last)
      if all_valid:
        return new, value
      return updates.select_tree(step.valid, (new, value), (state, jnp.float32(0)))

    return self._over_environments(one, acting_state, held, steps)

  def _learning(
    self,
    learner: types.LearnerState,
    rows: jax.Array,
    action: jax.Array,
    stored: jax.Array,
    valid: jax.Array,
  ) -> tuple[jax.Array, Any]:
    """r_int `[N]` of the learning half, which reads no values, and its state."""
    no_values = jnp.zeros((0, len(stored), 1, 1), jnp.float32)
    r_int, state = types.compute_on_windows(
      self._bonus,
      learner.learning,
      td=no_values[..., 0],
      action=_windows_of(action),
      q_tm1=no_values,
      q_t=no_values,
      observation=rows,
      stored=stored[:, None],
      mask=valid.astype(jnp.float32)[:, None],
    )
    return r_int[:, 0], state

  def _update(
    self,
    learner: types.LearnerState,
    rows: jax.Array,
    action: jax.Array,
    stored: jax.Array,
  ) -> types.LearnerState:
    """Both halves after an update on transitions."""
    training, learning = learner.training, learner.learning
    ones = jnp.ones(len(rows), jnp.int32)
    if self._training is not None:
      training, _ = self._training.update(training, rows, _windows_of(action), ones)
    if self._bonus.learning is not None:
      trained = types.LearnerState(learning, training)
      _, learning = self._learning(trained, rows, action, stored, ones)
    return types.LearnerState(learning, training)


@functools.cache
def _first_process() -> int:
  """The process in which the first bonus was made; its forks have this number, too."""
  return os.getpid()


def _windows_of(action: jax.Array) -> jax.Array:
  """int32 `[N]` → `[N, 2]`; nothing reads the action of the last row."""
  return jnp.stack([action, jnp.zeros_like(action)], axis=1)


def _where(mask: np.ndarray, new: Any, old: Any) -> np.ndarray:
  """Arrays `[N, ...]`: those of `new` where the mask `[N]` is."""
  return np.where(mask.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old)
