"""A bonus around a gymnasium environment, for agents of other libraries.

from explorax.agents.bonuses import gymnasium_wrapper, rnd
env = gymnasium_wrapper.BonusWrapper(env, rnd.RND(), beta=0.1)
"""

from collections.abc import Callable
from typing import Any

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


class BonusWrapper(gymnasium.Wrapper):
  """Adds β r_int to the reward of each step.

  `info` of each step has `extrinsic_reward`, the environment's, and
  `intrinsic_reward`, r_int without β. A bonus of the destination (novelty) rewards the
  step that arrives there; one of the source or the transition, the step from there.

  The bonus is learnt here: counts and memories grow with each step. A learning half, as
  RND's predictor, is trained on each step alone; networks for acting, as those of Never
  Give Up, on the rows since the last update, every `update_period` steps.

  Bonuses of an agent's values (`tdu`, `qu`, `infogain`, `td_error`) need the agent, and
  are refused. Where actions are not discrete, a bonus sees all of them as one: counts
  are of states then, and `NeverGiveUp` needs states other than `learned`.
  """

  def __init__(
    self,
    env: gymnasium.Env,
    bonus: types.Bonus,
    beta: exploration.Setting,
    *,
    seed: int = 0,
    update_period: int = 8,
    layout: str | None = None,
  ):
    """Wraps one environment; of several, each has a bonus of its own.

    Args:
      env: its observations one array, or discrete.
      bonus: settings of a bonus, as `counts.Counts()`, `rnd.RND()` or
        `ngu.NeverGiveUp(states="random", rnd=False)`, which is episodic novelty alone.
      beta: β, a number or a schedule, whose time is in steps of this environment.
      seed: of the bonus's networks.
      update_period: steps between two updates of networks for acting, at least 2.
      layout: the axes of images, such as `chw`; None: found from their shape.

    Raises:
      ValueError: if the bonus cannot take the observations, or `update_period` is
        below 2.
      TypeError: if the observations are no single array, or the bonus needs an agent.
    """
    super().__init__(env)
    if update_period < 2:
      raise ValueError(f"update_period is {update_period}; it must be at least 2.")
    spec, self._encode = _encoding(env, layout)
    actions = env.action_space
    self._first_action = None
    num_actions = 1
    if isinstance(actions, gymnasium.spaces.Discrete):
      self._first_action, num_actions = int(actions.start), int(actions.n)
    built = bonus.build(spec, num_actions)
    key = jax.random.PRNGKey(seed)
    if built.learning is not None and bonus.min_members > 0:
      raise TypeError(
        f"{type(bonus).__name__} is a bonus of an agent's values, which are not known "
        "here; use one of observations, as counts.Counts, rnd.RND or ngu.NeverGiveUp."
      )
    self._novelty = _Novelty(built, key, update_period)
    self._beta = beta
    self._steps = 0
    self._observation: Any = None

  def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    observation, info = self.env.reset(**kwargs)
    self._observation = self._encode(observation)
    self._novelty.begin(self._observation)
    return observation, info

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    observation, reward, terminated, truncated, info = self.env.step(action)
    source, self._observation = self._observation, self._encode(observation)
    index = 0 if self._first_action is None else int(action) - self._first_action
    r_int = float(self._novelty.step(source, np.int32(index), self._observation))
    beta = float(schedules.at(self._beta, self._steps))
    self._steps += 1
    info = {**info, "extrinsic_reward": float(reward), "intrinsic_reward": r_int}
    return observation, float(reward) + beta * r_int, terminated, truncated, info


class _Novelty:
  """Both halves of a bonus, for one environment."""

  def __init__(self, bonus: types.IntrinsicReward, key: jax.Array, update_period: int):
    self._bonus = bonus
    self._state = bonus.init(key)
    self._training = None
    self._period = update_period
    self._rows: list[tuple[np.ndarray, np.int32]] = []
    self._weights: Any = ()
    if bonus.acting is not None:
      self._observe = jax.jit(bonus.acting.observe, donate_argnums=1)
      self._begin_episode = jax.jit(bonus.acting.begin_episode, donate_argnums=0)
      self._acting_state = bonus.acting.init()
      self._training = bonus.acting.training
    if self._training is not None:
      self._update = jax.jit(self._training.update)
    if bonus.learning is not None:
      self._compute = jax.jit(self._of_one_transition, donate_argnums=0)

  def begin(self, observation: np.ndarray) -> None:
    if self._bonus.acting is None:
      return
    self._acting_state = self._begin_episode(self._acting_state)
    self._rows = []
    if self._training is not None:
      self._weights = self._training.weights(self._state.training)
    if self._bonus.end == "destination":
      self._see(observation, np.int32(0))  # Its value belongs to no step.

  def step(
    self, source: np.ndarray, action: np.int32, destination: np.ndarray
  ) -> jax.Array:
    if self._training is not None:
      self._rows.append((source, action))
      if len(self._rows) > self._period:
        self._train(self._training)
    stored = jnp.float32(0)
    if self._bonus.acting is not None:
      at_destination = self._bonus.end == "destination"
      stored = self._see(destination if at_destination else source, action)
    if self._bonus.learning is None:
      return stored
    r_int, state = self._compute(
      self._state.learning, source, action, destination, stored
    )
    self._state = self._state._replace(learning=state)
    return r_int

  def _see(self, observation: np.ndarray, action: np.int32) -> jax.Array:
    value, self._acting_state = self._observe(
      self._weights, self._acting_state, observation, action, np.bool_(False)
    )
    return value

  def _train(self, training: types.Training) -> None:
    """Updates on the rows so far, of which the last one begins the next window."""
    observations, actions = (
      np.stack(column)[None] for column in zip(*self._rows, strict=True)
    )
    number = np.array([len(self._rows) - 1], np.int32)
    state, _ = self._update(self._state.training, observations, actions, number)
    self._state = self._state._replace(training=state)
    fresh = training.weights(state)
    refresh = self._bonus.acting.refresh if self._bonus.acting else None
    self._weights = refresh(self._weights, fresh) if refresh else fresh
    self._rows = self._rows[-1:]

  def _of_one_transition(
    self,
    state: Any,
    source: jax.Array,
    action: jax.Array,
    destination: jax.Array,
    stored: jax.Array,
  ) -> tuple[jax.Array, Any]:
    """The learning half, on a batch of one transition without an agent's values."""
    assert self._bonus.learning is not None
    no_values = jnp.zeros((0, 1, 1), jnp.float32)
    inputs = types.Inputs(
      td=no_values[..., 0],
      a_tm1=action[None],
      q_tm1=no_values,
      q_t=no_values,
      observation_tm1=source[None],
      observation_t=destination[None],
      stored=stored[None],
      mask=jnp.ones(1, jnp.float32),
      num_later=jnp.zeros(1, jnp.float32),
      q=no_values,
      observation=source[None],
    ).at(self._bonus.end)
    r_int, state = self._bonus.learning.compute(state, inputs)
    return r_int[0], state


def _encoding(
  env: gymnasium.Env, layout: str | None
) -> tuple[dm_env.specs.Array, Callable[[Any], np.ndarray]]:
  """The spec of encoded observations, and the function that encodes one."""
  space = env.observation_space
  if (view := minigrid_views.of_environment(env)) is not None:
    return view, lambda x: np.array(encodings.Dense(view)(x))  # Also of a dict.
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
  # A copy, which outlives an array that the environment writes again.
  return dense.spec, lambda x: np.array(dense(x))
