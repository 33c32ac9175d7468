"""A bonus of N environments that is learnt while they are stepped.

It is for agents of other libraries: `gymnasium_wrapper` and `sb3_wrapper` add it to the
rewards. A loop with environments of another kind calls it itself: `begin` with the
first observations, then `step` with actions, the observations reached and which
episodes ended, and `begin` again for the environments that were reset.
"""

import os
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
_LARGEST_RISE = 2.0


class Learnt(NamedTuple):
  """What `save` writes."""

  learner: types.LearnerState
  acting: Any  # Of all environments; if it is of an episode, one for each, `[N, ...]`.
  moments: exploration.Moments  # Of r_int.
  # On the host: the largest absolute value in an observation, the steps of all
  # environments, and the learner's updates.
  largest: np.float32 = np.float32(0)
  steps: np.int32 = np.int32(0)
  updates: np.int32 = np.int32(0)


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

  Observations that are not finite are refused. Numbers are clipped to twice the
  largest one so far (at least 1), so that a single outlier does not spoil the
  statistics.

  Bonuses of an agent's values (`tdu`, `qu`, `infogain`, `td_error`) need the agent, and
  are refused. If actions are not discrete, a bonus sees all of them as one: counts
  then count states, and `NeverGiveUp` needs states other than `learned`.

  Attributes:
    ended: bool `[N]`, where no episode is running.
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
      view: `minigrid`, whose numbers are names of kinds, or `array`; needed for small
        images of bytes.

    Raises:
      ValueError: if the bonus cannot take the observations, if they may be MiniGrid's
        and `view` is None, or if `update_period` is below 1.
      TypeError: if the observations are no single array, or the bonus needs an agent.
    """
    if update_period < 1:
      raise ValueError(f"update_period is {update_period}; it must be at least 1.")
    spec, self._encode = observations_lib.make_encoding(observation_space, view)
    self._first_action, num_actions = None, 1
    if isinstance(action_space, gymnasium.spaces.Discrete):
      self._first_action, num_actions = int(action_space.start), int(action_space.n)
    self._bonus = bonus.build(spec, num_actions)
    self._acting, self._learning = self._bonus.acting, self._bonus.learning
    if self._learning is not None and self._learning.needs_values_only:
      raise TypeError(
        f"{type(bonus).__name__} is a bonus of an agent's values, which are not known "
        "here; use one of observations, as counts.Counts, rnd.RND or ngu.NeverGiveUp."
      )
    self._num_envs, self._normalise = num_envs, normalise
    self._begin = jax.jit(self._observe, donate_argnums=(1, 2))
    self._advance = jax.jit(self._compute, donate_argnums=1)
    self._learn = jax.jit(self._update, donate_argnums=0)
    self._beta: Any = jax.jit(beta) if isinstance(beta, schedules.Schedule) else beta
    self._has_episodes = bool(self._acting and self._acting.begin_episode)
    self._training = self._acting.training if self._acting else None
    self._batch_size = update_period * num_envs
    self._learnt = Learnt(*jax.jit(self._init)(jax.random.PRNGKey(seed)))
    self._held = self._initial_weights()
    self.ended = np.ones(num_envs, bool)
    self._observation = np.zeros((num_envs, *spec.shape), spec.dtype)
    # Rows, actions and stored values of steps that have not been learnt from.
    self._pending: list[list[np.ndarray]] = []

  @property
  def beta(self) -> float:
    """β of the next step."""
    return float(self._beta(self._learnt.steps) if callable(self._beta) else self._beta)

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
    begins = self.ended
    if not begins.all():
      index = np.zeros(self._num_envs, np.int32)
      if self._first_action is not None:
        index = np.asarray(actions).astype(np.int32) - np.int32(self._first_action)
      r_int = self._step(index, reached, np.asarray(done, bool))
    if begins.any():
      self._start(reached, begins)
    return np.asarray(beta * r_int, np.float32), r_int

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes what has been learnt to an `.npz` file: one tree, without pickle."""
    with open(path, "wb") as file:
      np.savez(file, *map(np.asarray, jax.tree.leaves(self._learnt)))

  def load(self, path: str | os.PathLike[str]) -> None:
    """Restores what `save` wrote, for any number of environments; episodes begin.

    If each environment has a state, environment i gets the file's state i mod N.

    Raises:
      ValueError: if the file is of another bonus or of other observations.
    """
    with np.load(path, allow_pickle=False) as file:
      leaves = list(file.values())
    expected, structure = jax.tree.flatten(self._learnt)
    learnt = self._learnt
    if len(leaves) == len(expected):
      learnt = jax.tree.unflatten(structure, leaves)
      acting = learnt.acting
      if self._has_episodes:
        envs = np.arange(self._num_envs)
        acting = jax.tree.map(lambda x: x[envs % len(x)], acting)
      # Arrays of the device, which may be donated: those of the host are only borrowed.
      owned = jax.tree.map(lambda x: jnp.array(x, copy=True), (learnt.learner, acting))
      learnt = learnt._replace(learner=owned[0], acting=owned[1])
      leaves = jax.tree.leaves(learnt)
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for x in expected]:
      raise ValueError(f"{path} is of another bonus, or of other observations.")
    self._learnt, self._pending = learnt, []
    self._held = self._initial_weights()
    self.ended = np.ones(self._num_envs, bool)

  def _encoded(self, observations: Any, mask: np.ndarray) -> np.ndarray:
    """Encoded observations `[N, ...]`; outside of the mask, the current ones."""
    encoded = self._observation.copy()
    with np.errstate(over="ignore"):
      for i in np.flatnonzero(mask):
        encoded[i] = self._encode(observations[i])
    if encoded.dtype != np.float32:
      return encoded
    before = self._learnt.largest
    largest = np.max(np.abs(encoded), initial=before)
    if not np.isfinite(largest):
      i = np.argwhere(~np.isfinite(encoded))[0, 0]
      number = encoded[i][~np.isfinite(encoded[i])][0]
      raise ValueError(
        f"environment {i} returned an observation with {number}, and a bonus learns "
        "from finite numbers of float32 alone; correct the environment, or clip its "
        "observations."
      )
    limit = _LARGEST_RISE * max(1.0, float(before))
    if before > 0 and limit < float(largest):
      encoded, largest = np.clip(encoded, -limit, limit), np.float32(limit)
    self._learnt = self._learnt._replace(largest=largest)
    return encoded

  def _start(self, observations: np.ndarray, begins: np.ndarray) -> None:
    """Starts episodes with encoded observations."""
    if self._acting is not None:
      learner, acting, *_ = self._learnt
      no_action, no_end = np.zeros(self._num_envs, np.int32), np.zeros_like(begins)
      row = observations, no_action, no_end
      # The first value of a destination belongs to no step.
      sees = begins & (self._bonus.end == "destination")
      acting, self._held, _ = self._begin(
        learner, acting, self._held, row, sees, begins
      )
      self._learnt = self._learnt._replace(acting=acting)
    self._observation = _where(begins, observations, self._observation)
    self.ended = self.ended & ~begins

  def _step(
    self, action: np.ndarray, reached: np.ndarray, done: np.ndarray
  ) -> np.ndarray:
    """r_int of the steps, which are learnt from."""
    learnt, valid = self._learnt, ~self.ended
    has_learnt = self._learning is None or int(learnt.updates) > 0
    rows = np.stack([self._observation, reached], axis=1)
    r_int, stored, acting, moments = self._advance(
      learnt.learner,
      learnt.acting,
      learnt.moments,
      self._held,
      (rows, action, done),
      valid,
      None if valid.all() else valid,
      valid & has_learnt,
    )
    total = learnt.steps + np.sum(valid, dtype=np.int32)
    self._learnt = learnt._replace(acting=acting, moments=moments, steps=total)
    if self._training is not None or self._learning is not None:
      self._collect([x[valid] for x in (rows, action, np.asarray(stored))])
    self._observation = _where(valid, reached, self._observation)
    self.ended = self.ended | (valid & done)
    return np.asarray(r_int)

  def _collect(self, transitions: list[np.ndarray]) -> None:
    """Keeps (rows, actions, stored values), and learns when they make a batch."""
    self._pending.append(transitions)
    if sum(len(rows) for rows, *_ in self._pending) >= self._batch_size:
      columns = [np.concatenate(column) for column in zip(*self._pending, strict=True)]
      batch = [column[: self._batch_size] for column in columns]
      self._pending = [[column[self._batch_size :] for column in columns]]
      self._learnt = self._learnt._replace(
        learner=self._learn(self._learnt.learner, *batch),
        updates=self._learnt.updates + np.int32(1),
      )

  def _init(self, key: jax.Array) -> tuple[Any, ...]:
    """What `Learnt` has on the device."""
    acting = () if self._acting is None else self._acting.init()
    acting = self._for_each(acting) if self._has_episodes else acting
    return self._bonus.init(key), acting, exploration.init_moments()

  def _fresh_weights(self, learner: types.LearnerState) -> Any:
    return self._training.weights(learner.training) if self._training else ()

  def _initial_weights(self) -> Any:
    """Those that each environment's episode keeps, `[N, ...]`; `()` without them."""
    if self._acting is None or self._acting.refresh is None:
      return ()
    return self._for_each(self._fresh_weights(self._learnt.learner))

  def _for_each(self, tree: Any) -> Any:
    """Copies of it, `[N, ...]`."""
    n = self._num_envs
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)

  def _observe(
    self,
    learner: types.LearnerState,
    acting_state: Any,
    held: Any,
    row: tuple[jax.Array, jax.Array, jax.Array],
    sees: jax.Array | None,
    begins: jax.Array | None = None,
  ) -> tuple[Any, Any, jax.Array]:
    """The acting half's state, the weights that episodes keep, and its values `[N]`.

    Episodes begin where `begins` is (None: nowhere). Then the acting half sees the row
    (observation, action, whether it is an episode's last) where `sees` is (None:
    everywhere).
    """
    acting, fresh = self._acting, self._fresh_weights(learner)
    assert acting is not None

    def one(state: Any, args: Any) -> tuple[Any, Any]:
      held, row, sees, begins = args
      if begins is not None:
        if acting.begin_episode is not None:
          begin = acting.begin_episode
          state = jax.lax.cond(begins, begin, lambda same: same, state)
        if acting.refresh is not None:
          held = updates.select_tree(begins, fresh, held)
      weights = fresh if acting.refresh is None else acting.refresh(held, fresh)

      def observe(state: Any) -> tuple[jax.Array, Any]:
        return acting.observe(weights, state, *row)

      if sees is None:
        value, state = observe(state)
      else:
        nothing = lambda state: (jnp.float32(0), state)  # noqa: E731
        value, state = jax.lax.cond(sees, observe, nothing, state)
      return state, (held, value)

    args = held, row, sees, begins
    if self._has_episodes:
      acting_state, (held, value) = jax.vmap(one)(acting_state, args)
    else:  # They share the state, one after the other.
      acting_state, (held, value) = jax.lax.scan(one, acting_state, args)
    return acting_state, held, value

  def _compute(
    self,
    learner: types.LearnerState,
    acting_state: Any,
    moments: exploration.Moments,
    held: Any,
    steps: tuple[jax.Array, jax.Array, jax.Array],
    valid: jax.Array,
    sees: jax.Array | None,
    pays: jax.Array,
  ) -> tuple[jax.Array, jax.Array, Any, exploration.Moments]:
    """r_int `[N]`, the acting half's values `[N]`, its state, and the moments.

    Of environments that have taken the step (`valid`, and `sees`, which is None if all
    have); elsewhere, and where it does not pay, r_int is 0.
    """
    rows, action, done = steps
    r_int = stored = jnp.zeros(self._num_envs, jnp.float32)
    if self._acting is not None:
      arrives = self._bonus.end == "destination"
      row = rows[:, int(arrives)], action, done & arrives
      acting_state, _, stored = self._observe(learner, acting_state, held, row, sees)
      r_int = stored
    if self._learning is not None:
      r_int, _ = self._learned(learner.learning, rows, action, stored, valid)
    if self._normalise:
      moments = exploration.update_moments(moments, r_int, pays)
      r_int = exploration.over_deviation(moments, r_int)
    return jnp.where(pays, r_int, 0.0), stored, acting_state, moments

  def _learned(
    self,
    state: Any,
    rows: jax.Array,
    action: jax.Array,
    stored: jax.Array,
    valid: jax.Array,
  ) -> tuple[jax.Array, Any]:
    """r_int `[N]` of the learning half, which reads no values, and its state."""
    no_values = jnp.zeros((0, len(stored), 1, 1), jnp.float32)
    r_int, state = types.compute_on_windows(
      self._bonus,
      state,
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
    if self._learning is not None:
      _, learning = self._learned(learning, rows, action, stored, ones)
    return types.LearnerState(learning, training)


def _windows_of(action: jax.Array) -> jax.Array:
  """int32 `[N]` → `[N, 2]`; nothing reads the action of the last row."""
  return jnp.stack([action, jnp.zeros_like(action)], axis=1)


def _where(mask: np.ndarray, new: Any, old: Any) -> np.ndarray:
  """Arrays `[N, ...]`: those of `new` where the mask `[N]` is."""
  return np.where(mask.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old)
