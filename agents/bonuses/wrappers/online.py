"""A bonus of N environments that is learnt while they are stepped.

It is for agents of other libraries: `gymnasium_wrapper` and `sb3_wrapper` add it to the
rewards. A loop with environments of another kind calls it itself: `begin` with the
first observations, then `step` with actions, the observations reached and which
episodes ended, and `begin` again for the environments that were reset.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents.bonuses import types
from explorax.environments import encodings, minigrid_views, specs
from explorax.exploration import schedules

_ARRAYS = (
  gymnasium.spaces.Box,
  gymnasium.spaces.MultiBinary,
  gymnasium.spaces.MultiDiscrete,
)


class Carried(NamedTuple):
  """What each step changes on the device.

  Attributes:
    acting: the acting half's state, for all environments or, where it is of an episode,
      one for each, `[N, ...]`.
    weights: for acting, with which each environment's episode began, `[N, ...]`; `()`
      if an episode does not keep them.
    moments: of r_int.
  """

  acting: Any
  weights: Any
  moments: exploration.Moments


class State(NamedTuple):
  """All that changes.

  Attributes:
    learner: of both halves, for all environments.
    carried: from step to step.
    observation: the current ones, encoded, `[N, ...]`.
    start: whether they are the first of their episodes, bool `[N]`.
    rows, actions, stored: observations `[M, 2, ...]`, int32 `[M, 2]` and the acting
      half's values `[M]` of transitions that have not been learnt from.
    num_rows: the number of these.
    steps: environment steps so far, of all environments.
  """

  learner: types.LearnerState
  carried: Carried
  observation: np.ndarray
  start: np.ndarray
  rows: np.ndarray
  actions: np.ndarray
  stored: np.ndarray
  num_rows: np.ndarray
  steps: np.ndarray


class Steps(NamedTuple):
  """One step of each environment: arrays `[N, ...]`, observations encoded.

  `pays`: whether r_int counts; it is 0 otherwise.
  """

  observation: Any
  action: Any
  next_observation: Any
  start: Any
  valid: Any
  done: Any
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
    layout: str | None = None,
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
      layout: the axes of images, such as `chw`; None: found from their shape.
      env: one of the environments, which tells MiniGrid's observations from others.

    Raises:
      ValueError: if the bonus cannot take the observations, or `update_period` is
        below 1.
      TypeError: if the observations are no single array, or the bonus needs an agent.
    """
    if update_period < 1:
      raise ValueError(f"update_period is {update_period}; it must be at least 1.")
    spec, self._encode = _encoding(observation_space, layout, env)
    self._first_action, num_actions = None, 1
    if isinstance(action_space, gymnasium.spaces.Discrete):
      self._first_action, num_actions = int(action_space.start), int(action_space.n)
    self._bonus = bonus.build(spec, num_actions)
    if self._bonus.learning is not None and bonus.min_members > 0:
      raise TypeError(
        f"{type(bonus).__name__} is a bonus of an agent's values, which are not known "
        "here; use one of observations, as counts.Counts, rnd.RND or ngu.NeverGiveUp."
      )
    self._num_envs, self._beta, self._normalise = num_envs, beta, normalise
    self._advance = jax.jit(self._compute, static_argnums=(3, 4), donate_argnums=1)
    self._beta_at = jax.jit(functools.partial(schedules.at, beta))
    acting = self._bonus.acting
    self._has_episodes = acting is not None and acting.begin_episode is not None
    self._training = None if acting is None else acting.training
    self._batch_size = space = 0
    if self._training is not None or self._bonus.learning is not None:
      self._batch_size = update_period * num_envs
      space = self._batch_size + num_envs - 1
      self._learn = jax.jit(self._update, donate_argnums=0)
    learner, carried = jax.jit(self._init)(jax.random.PRNGKey(seed))
    self._state = State(
      learner,
      carried,
      observation=np.zeros((num_envs, *spec.shape), spec.dtype),
      start=np.ones(num_envs, bool),
      rows=np.zeros((space, 2, *spec.shape), spec.dtype),
      actions=np.zeros((space, 2), np.int32),
      stored=np.zeros(space, np.float32),
      num_rows=np.array(0),
      steps=np.array(0),
    )
    self._unfrozen: State | None = None

  @property
  def beta(self) -> float:
    """β of the next step."""
    if isinstance(self._beta, schedules.Schedule):
      return float(self._beta_at(self._state.steps))
    return self._beta

  def begin(self, observations: Any, mask: np.ndarray | None = None) -> None:
    """Starts episodes.

    Args:
      observations: `[N, ...]`, the first ones of the episodes.
      mask: bool `[N]`, the environments in which an episode starts; None: all.
    """
    mask = np.ones(self._num_envs, bool) if mask is None else np.asarray(mask, bool)
    if not mask.any():
      return
    state = self._state
    carried, keep = state.carried, functools.partial(_where, mask)
    if self._unfrozen is not None and self._has_episodes:
      acting = jax.tree.map(keep, self._unfrozen.carried.acting, carried.acting)
      carried = carried._replace(acting=_copied(acting))
    self._state = state._replace(
      carried=carried,
      observation=keep(self._encoded(observations), state.observation),
      start=state.start | mask,
    )

  def step(
    self,
    actions: Any,
    next_observations: Any,
    done: Any,
    valid: np.ndarray | None = None,
  ) -> tuple[np.ndarray, np.ndarray]:
    """Computes the bonus of one step of each environment, and keeps it to learn from.

    Args:
      actions: `[N, ...]`, those taken.
      next_observations: `[N, ...]`, those reached; at an episode's end its last one,
        not the first of the next.
      done: bool `[N]`, whether the episode ended, for whatever reason.
      valid: bool `[N]`; an environment in which it is False has not taken a step. Its
        r_int is 0, and nothing is learnt from it. None: all are valid.

    Returns:
      β r_int and r_int, float32 `[N]`.
    """
    beta = self.beta
    valid = np.ones(self._num_envs, bool) if valid is None else np.asarray(valid, bool)
    if not valid.any():
      nothing = np.zeros(self._num_envs, np.float32)
      return nothing, nothing
    state = self._state
    has_learnt = self._bonus.learning is None or state.steps >= self._batch_size
    steps = Steps(
      state.observation,
      self._indices(actions),
      self._encoded(next_observations),
      state.start & valid,
      valid,
      np.asarray(done, bool),
      pays=valid & has_learnt,
    )
    is_plain = bool(valid.all() and not state.start.any())
    is_frozen = self._unfrozen is not None
    r_int, stored, carried = self._advance(
      state.learner, state.carried, steps, is_plain, is_frozen
    )
    self._state = state._replace(
      carried=carried,
      observation=_where(valid, steps.next_observation, state.observation),
      start=state.start & ~valid,
    )
    if not is_frozen:
      self._state = self._state._replace(steps=state.steps + valid.sum())
      if self._batch_size:
        self._collect(steps, np.asarray(stored))
    r_int = np.asarray(r_int)
    return np.asarray(beta * r_int, np.float32), r_int

  def freeze(self, frozen: bool = True) -> None:
    """Stops all learning, for evaluation, or resumes it.

    While it is frozen, networks, statistics and what is kept over all episodes do not
    change, and each episode has memories of its own. Afterwards everything is as it
    was, so environments that were stepped in between have to be reset.
    """
    if frozen and self._unfrozen is None:
      self._unfrozen = self._state
      carried = _copied(self._state.carried)
      self._state = self._state._replace(carried=carried)
    elif not frozen and self._unfrozen is not None:
      self._state, self._unfrozen = self._unfrozen, None

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes all that changes to an `.npz` file, without pickle."""
    with open(path, "wb") as file:
      np.savez(file, **_named(self._unfrozen or self._state))

  def load(self, path: str | os.PathLike[str]) -> None:
    """Restores what `save` wrote; environments themselves are not in the file.

    Raises:
      ValueError: if the file is of another bonus, of other observations or of another
        number of environments.
    """
    with np.load(path, allow_pickle=False) as file:
      arrays = dict(file)
    expected = _named(self._state)
    for name in sorted(expected.keys() | arrays.keys()):
      there, here = (
        (x[name].shape, x[name].dtype) if name in x else None
        for x in (arrays, expected)
      )
      if there != here:
        raise ValueError(
          f"{path} is of other settings: {name} is {there} there and {here} here."
        )
    ordered = [arrays[name] for name in expected]
    state = jax.tree.unflatten(jax.tree.structure(self._state), ordered)
    learner, carried = _copied((state.learner, state.carried))
    self._state = state._replace(learner=learner, carried=carried)
    self._unfrozen = None

  def _encoded(self, observations: Any) -> np.ndarray:
    each = unbatched(observations, self._num_envs)
    return np.stack([self._encode(x) for x in each])

  def _indices(self, actions: Iterable[Any]) -> np.ndarray:
    if self._first_action is None:
      return np.zeros(self._num_envs, np.int32)
    return np.asarray(actions).astype(np.int32) - np.int32(self._first_action)

  def _collect(self, steps: Steps, stored: np.ndarray) -> None:
    """Adds valid transitions to the rows, and learns when they make a batch."""
    state, size, valid = self._state, self._batch_size, steps.valid
    begin = int(state.num_rows)
    end = begin + int(valid.sum())
    pairs = np.stack([steps.observation, steps.next_observation], axis=1)
    state.rows[begin:end] = pairs[valid]
    state.actions[begin:end, 0] = steps.action[valid]
    state.stored[begin:end] = stored[valid]
    if end >= size:
      columns = state.rows, state.actions, state.stored
      # Copies, since the rows are written again while the update may still run.
      learner = self._learn(state.learner, *(x[:size].copy() for x in columns))
      state = state._replace(learner=learner)
      for column in columns:
        column[: end - size] = column[size:end]
      end -= size
    self._state = state._replace(num_rows=np.array(end))

  def _init(self, key: jax.Array) -> tuple[types.LearnerState, Carried]:
    learner, acting = self._bonus.init(key), self._bonus.acting
    state, weights = (), ()
    if acting is not None:
      state = acting.init()
      if acting.begin_episode is not None:
        state = self._for_each(state)
      if acting.training is not None and acting.refresh is not None:
        weights = self._for_each(acting.training.weights(learner.training))
    return learner, Carried(state, weights, exploration.init_moments())

  def _for_each(self, tree: Any) -> Any:
    """Copies of it, `[N, ...]`."""
    n = self._num_envs
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *jnp.shape(x))), tree)

  def _compute(
    self,
    learner: types.LearnerState,
    carried: Carried,
    steps: Steps,
    is_plain: bool,
    is_frozen: bool,
  ) -> tuple[jax.Array, jax.Array, Carried]:
    """r_int `[N]`, the acting half's values `[N]`, and what is carried on.

    `is_plain`: no episode starts, and all environments are valid.
    """
    acting_state, weights, moments = carried
    r_int = stored = jnp.zeros(self._num_envs, jnp.float32)
    if self._bonus.acting is not None:
      r_int, acting_state, weights = self._act(
        self._bonus.acting, learner, carried, steps, is_plain
      )
      stored = r_int
    if self._bonus.learning is not None:
      transitions = steps.observation, steps.action, steps.next_observation
      inputs = self._inputs(*transitions, stored, steps.valid.astype(jnp.float32))
      r_int, _ = self._bonus.learning.compute(learner.learning, inputs)
    if self._normalise:
      mask = steps.pays.astype(jnp.float32)
      new = exploration.update_moments(moments, r_int, mask)
      r_int = exploration.over_deviation(new, r_int)
      moments = moments if is_frozen else new
    if is_frozen and not self._has_episodes:
      acting_state = carried.acting
    r_int = jnp.where(steps.pays, r_int, 0.0)
    return r_int, stored, Carried(acting_state, weights, moments)

  def _update(
    self,
    learner: types.LearnerState,
    rows: jax.Array,
    actions: jax.Array,
    stored: jax.Array,
  ) -> types.LearnerState:
    """Both halves after an update on transitions."""
    if self._training is not None:
      ones = jnp.ones(len(rows), jnp.int32)
      training, _ = self._training.update(learner.training, rows, actions, ones)
      learner = learner._replace(training=training)
    if self._bonus.learning is not None:
      transitions = rows[:, 0], actions[:, 0], rows[:, 1]
      inputs = self._inputs(*transitions, stored, jnp.ones_like(stored))
      _, learning = self._bonus.learning.compute(learner.learning, inputs)
      learner = learner._replace(learning=learning)
    return learner

  def _inputs(
    self,
    observation_tm1: jax.Array,
    a_tm1: jax.Array,
    observation_t: jax.Array,
    stored: jax.Array,
    mask: jax.Array,
  ) -> types.Inputs:
    """Of a learning half that reads no values of an agent."""
    no_values = jnp.zeros((0, len(stored), 1), jnp.float32)
    return types.Inputs(
      td=no_values[..., 0],
      a_tm1=a_tm1,
      q_tm1=no_values,
      q_t=no_values,
      observation_tm1=observation_tm1,
      observation_t=observation_t,
      stored=stored,
      mask=mask,
      num_later=jnp.zeros_like(mask),
      q=no_values,
      observation=observation_tm1,
    ).at(self._bonus.end)

  def _act(
    self,
    acting: types.Acting,
    learner: types.LearnerState,
    carried: Carried,
    steps: Steps,
    is_plain: bool,
  ) -> tuple[jax.Array, Any, Any]:
    """Values `[N]` of the acting half, its state, and the weights of episodes."""
    arrives = self._bonus.end == "destination"
    fresh: Any = ()
    if acting.training is not None:
      fresh = acting.training.weights(learner.training)

    def one(state: Any, held: Any, step: Steps) -> tuple[Any, tuple[jax.Array, Any]]:
      """One environment's new state, value, and weights of the episode."""

      def if_(condition: Any, change: Callable[[Any], Any], old: Any) -> Any:
        return old if is_plain else jax.lax.cond(condition, change, lambda x: x, old)

      weights = fresh
      if acting.refresh is not None:
        held = if_(step.start, lambda _: fresh, held)
        weights = acting.refresh(held, fresh)

      def start(state: Any) -> Any:
        if acting.begin_episode is not None:
          state = acting.begin_episode(state)
        if arrives:  # The value of the first observation belongs to no step.
          no_action, is_last = jnp.zeros_like(step.action), jnp.zeros_like(step.done)
          _, state = acting.observe(
            weights, state, step.observation, no_action, is_last
          )
        return state

      def observe(state: Any) -> tuple[jax.Array, Any]:
        seen = step.next_observation if arrives else step.observation
        return acting.observe(weights, state, seen, step.action, step.done & arrives)

      state = if_(step.start, start, state)
      if is_plain:
        value, state = observe(state)
      else:
        value, state = jax.lax.cond(
          step.valid, observe, lambda state: (jnp.float32(0), state), state
        )
      return state, (value, held)

    if acting.begin_episode is None:

      def of_all(state: Any, x: tuple[Any, Steps]) -> tuple[Any, tuple[jax.Array, Any]]:
        return one(state, *x)

      state, (values, held) = jax.lax.scan(
        of_all, carried.acting, (carried.weights, steps)
      )
    else:
      state, (values, held) = jax.vmap(one)(carried.acting, carried.weights, steps)
    return values, state, held


def unbatched(observations: Any, num_envs: int) -> Sequence[Any]:
  """The observation of each environment; those of several parts are dicts of arrays."""
  if not isinstance(observations, Mapping):
    return observations
  parts = observations.items()
  return [{name: part[i] for name, part in parts} for i in range(num_envs)]


def _where(mask: np.ndarray, new: Any, old: Any) -> np.ndarray:
  """Arrays `[N, ...]`: those of `new` where the mask `[N]` is."""
  return np.where(mask.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old)


def _copied(tree: Any) -> Any:
  """Arrays of the device, which may be donated: those of the host are only borrowed."""
  return jax.tree.map(lambda x: jnp.array(x, copy=True), tree)


def _named(state: State) -> dict[str, np.ndarray]:
  leaves, _ = jax.tree_util.tree_flatten_with_path(state)
  return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def _encoding(
  space: gymnasium.Space, layout: str | None, env: gymnasium.Env | None
) -> tuple[dm_env.specs.Array, Callable[[Any], np.ndarray]]:
  """The spec of encoded observations, and the function that encodes one."""
  view = None if env is None else minigrid_views.of_environment(env)
  if view is not None:
    return view, encodings.Dense(view)  # Also of a dict.
  if isinstance(space, gymnasium.spaces.Discrete):
    first = int(space.start)
    one_hot = specs.OneHotArray((int(space.n),))
    return encodings.OneHotIndex(one_hot).spec, lambda x: np.array(x - first, np.int32)
  if not isinstance(space, _ARRAYS):
    raise TypeError(
      f"the environment's observations are {space!r:.80}, but a bonus takes one array; "
      "join the parts into one, for instance with "
      "gymnasium.wrappers.FlattenObservation, or choose one of them with "
      "gymnasium.wrappers.TransformObservation."
    )
  dtype = np.uint8 if space.dtype == np.uint8 else np.float32
  dense = encodings.Dense(specs.of_array(space.shape, dtype, None, layout))
  return dense.spec, dense
