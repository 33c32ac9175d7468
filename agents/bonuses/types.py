"""The interface of bonuses: intrinsic rewards r_int of transitions, in two halves.

The acting half computes what only an actor knows, such as the visits of an episode, and
its value is stored with each row. The learning half computes r_int of a batch, with the
current networks, and sees the stored values. Only `scaling` multiplies r_int by β.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import ranges


class Inputs(NamedTuple):
  """A learning half gets these inputs for N transitions, without gradients.

  Attributes:
    td: `[K, N]`, TD errors on the extrinsic reward, on the scale of rewards, of the
      members that never see the bonus (of all members if all see it).
    a_tm1: int32 `[N]`.
    q_tm1, q_t: `[K, N, A]`, those members' online values at the source and at the
      destination.
    observation_tm1, observation_t: `[N, ...]`, encoded.
    stored: float32 `[N]`, the acting half's values; 0 if there is none.
    mask: float32 `[N]`, 1 if the transition is real and is trained on.
    num_later: float32 `[N]`, number of such transitions after it in the window.
    q, observation: at the bonus's end; for `transition`, at the source.
  """

  td: jax.Array
  a_tm1: jax.Array
  q_tm1: jax.Array
  q_t: jax.Array
  observation_tm1: jax.Array
  observation_t: jax.Array
  stored: jax.Array
  mask: jax.Array
  num_later: jax.Array
  q: jax.Array
  observation: jax.Array

  @property
  def transitions(self) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(observation_tm1, a_tm1, observation_t, mask)."""
    return self.observation_tm1, self.a_tm1, self.observation_t, self.mask

  def at(self, end: str) -> "Inputs":
    """The inputs with `q` and `observation` of this end."""
    if end == "destination":
      return self._replace(q=self.q_t, observation=self.observation_t)
    return self._replace(q=self.q_tm1, observation=self.observation_tm1)


class Training(NamedTuple):
  """The training, in the learner, of networks for an acting half.

  Attributes:
    init: (key) → state.
    update: (state, observation `[B, R, ...]`, action `[B, R]`, number of transitions
      int32 `[B]`) → (state, metrics), on windows of rows: row i is followed by row
      i + 1 for i below that number; later rows are padding.
    weights: (state) → the weights for acting.
    metrics: the names of the metrics of an update.
  """

  init: Callable[[jax.Array], Any]
  update: Callable[
    [Any, jax.Array, jax.Array, jax.Array], tuple[Any, dict[str, jax.Array]]
  ]
  weights: Callable[[Any], Any]
  metrics: tuple[str, ...] = ()


def untrained(init: Callable[[jax.Array], Any]) -> Training:
  """Random weights from (key) → weights, the same in all actors, never trained."""
  return Training(init, lambda state, *rows: (state, {}), lambda state: state)


class Acting(NamedTuple):
  """The half that is computed while acting, and stored with each row.

  Attributes:
    init: () → state.
    begin_episode: (state) → state. None: the state is of all episodes, and environments
      that are stepped together may share it (`online`).
    observe: (weights, state, x_t, a_t, last) → (value of row t, state); `last` is true
      on an episode's last row, whose action is drawn but never taken. Without training,
      weights are `()`.
    training: of its networks in the learner; None: it has none.
    refresh: (current, new) → the weights for the rest of the episode. An episode starts
      with the new ones. None: the new ones are used when they come.
  """

  init: Callable[[], Any]
  begin_episode: Callable[[Any], Any] | None
  observe: Callable[[Any, Any, jax.Array, jax.Array, jax.Array], tuple[jax.Array, Any]]
  training: Training | None = None
  refresh: Callable[[Any, Any], Any] | None = None


class Learning(NamedTuple):
  """The half that is computed in the learner, with the current networks.

  Attributes:
    init: (key) → state.
    compute: (state, Inputs) → (r_int `[N]` of the transitions, without gradient,
      state).
    needs_values_only: whether it has no state and reads no observation, but values or
      TD errors. The priorities of new windows then include it.
  """

  init: Callable[[jax.Array], Any]
  compute: Callable[[Any, Inputs], tuple[jax.Array, Any]]
  needs_values_only: bool = False


class IntrinsicReward(NamedTuple):
  """A bonus for observations of one spec; it has at least one of the halves.

  Attributes:
    end: `source`, `transition` or `destination`: to which transition the stored value
      of a row belongs (`scaling.align`), and where `Inputs.observation` and `Inputs.q`
      are taken.
    acting: without a learning half, its stored value is r_int.
    learning: its result is r_int.
  """

  end: str
  acting: Acting | None = None
  learning: Learning | None = None

  @property
  def acting_gives_reward(self) -> bool:
    """Whether actors compute r_int itself."""
    return self.acting is not None and self.learning is None

  @property
  def column(self) -> str:
    """The name of the stored value among a row's extras."""
    return "r_int" if self.acting_gives_reward else "stored_bonus"

  def init(self, key: jax.Array) -> "LearnerState":
    """The learner's state of both halves; raises a ValueError for an invalid end."""
    if self.end not in ("source", "transition", "destination"):
      raise ValueError(f"the end of a bonus is {self.end!r}; see `IntrinsicReward`.")
    learning, training = (), ()
    if self.learning is not None:
      learning = self.learning.init(key)
      key = jax.random.fold_in(key, 1)
    if self.acting is not None and self.acting.training is not None:
      training = self.acting.training.init(key)
    return LearnerState(learning, training)


class LearnerState(NamedTuple):
  """The learner's state: of the learning half, and of the acting half's training."""

  learning: Any = ()
  training: Any = ()


def compute_on_windows(
  bonus: IntrinsicReward,
  state: Any,
  td: jax.Array,
  action: jax.Array,
  q_tm1: jax.Array,
  q_t: jax.Array,
  observation: jax.Array,
  stored: jax.Array,
  mask: jax.Array,
) -> tuple[jax.Array, Any]:
  """The learning half on the B · T transitions of windows of T + 1 rows.

  Args:
    bonus: to compute; it has a learning half.
    state: of this half.
    td: `[K, B, T]`.
    action: int32 `[B, T + 1]`.
    q_tm1, q_t: `[K, B, T, A]`.
    observation: `[B, T + 1, ...]`.
    stored: float32 `[B, T]`, the acting half's values of the transitions.
    mask: float32 `[B, T]`.

  Returns:
    r_int `[B, T]`, and the state.
  """
  assert bonus.learning is not None

  def flat(x: jax.Array, axis: int = 0) -> jax.Array:
    return jnp.reshape(x, (*x.shape[:axis], mask.size, *x.shape[axis + 2 :]))

  q_tm1, q_t = flat(q_tm1, 1), flat(q_t, 1)
  observation_tm1, observation_t = flat(observation[:, :-1]), flat(observation[:, 1:])
  inputs = Inputs(
    td=flat(td, 1),
    a_tm1=flat(action[:, :-1]),
    q_tm1=q_tm1,
    q_t=q_t,
    observation_tm1=observation_tm1,
    observation_t=observation_t,
    stored=flat(stored),
    mask=flat(mask),
    num_later=flat(jnp.cumsum(mask[:, ::-1], axis=1)[:, ::-1] - mask),
    q=q_tm1,
    observation=observation_tm1,
  ).at(bonus.end)
  r_int, state = bonus.learning.compute(state, jax.lax.stop_gradient(inputs))
  return jnp.reshape(r_int, mask.shape), state


class Bonus(ranges.Checked, abc.ABC):
  """The base of a frozen dataclass of a bonus's settings, which builds it.

  Attributes:
    min_members: the least number of members that never see the bonus.
  """

  min_members: ClassVar[int] = 1

  @abc.abstractmethod
  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> IntrinsicReward:
    """The bonus for encoded observations of this spec."""


def of_values(end: str, compute: Callable[[Inputs], jax.Array]) -> IntrinsicReward:
  """A learning half from (Inputs) → r_int `[N]`, which reads no observation."""
  learning = Learning(
    init=lambda key: (),
    compute=lambda state, inputs: (compute(inputs), state),
    needs_values_only=True,
  )
  return IntrinsicReward(end, learning=learning)
