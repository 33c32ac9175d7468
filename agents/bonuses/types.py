"""The interface of bonuses: r_int of transitions, from the learner or the actor.

A bonus returns r_int; only `scaling` multiplies it by β.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import ranges


def check_end(end: str) -> None:
  """Refuses an invalid end of a transition."""
  if end not in ("source", "transition", "destination"):
    raise ValueError(
      f"the end of a bonus is 'source', 'transition' or 'destination', not {end!r}."
    )


class Inputs(NamedTuple):
  """A learner's bonus gets these inputs for N transitions, without gradients.

  Attributes:
    td: `[K, N]`, TD errors on the extrinsic reward, on the scale of rewards, of the
      members that never see the bonus (of all members if all see it).
    a_tm1: int32 `[N]`.
    q_tm1, q_t: `[K, N, A]`, those members' online values at the source and at the
      destination.
    observation_tm1, observation_t: `[N, ...]`, encoded.
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
  mask: jax.Array
  num_later: jax.Array
  q: jax.Array
  observation: jax.Array


class LearnerBonus(NamedTuple):
  """A bonus computed in the learner, with the current networks.

  Attributes:
    end: `source`, `transition` or `destination`: where `Inputs.observation` and
      `Inputs.q` are taken.
    init: (key) → state.
    compute: (state, Inputs) → (r_int `[N]` of the transitions, without gradient,
      state).
    needs_values_only: whether it has no state and reads no observation. The priorities
      of new windows then include it.
  """

  end: str
  init: Callable[[jax.Array], Any]
  compute: Callable[[Any, Inputs], tuple[jax.Array, Any]]
  needs_values_only: bool = False


def compute_on_windows(
  bonus: LearnerBonus,
  state: Any,
  td: jax.Array,
  action: jax.Array,
  q_tm1: jax.Array,
  q_t: jax.Array,
  observation: jax.Array,
  mask: jax.Array,
) -> tuple[jax.Array, Any]:
  """The bonus of the B · T transitions of windows of T + 1 rows.

  Args:
    bonus: to compute.
    state: its state.
    td: `[K, B, T]`.
    action: int32 `[B, T + 1]`.
    q_tm1, q_t: `[K, B, T, A]`.
    observation: `[B, T + 1, ...]`.
    mask: float32 `[B, T]`.

  Returns:
    r_int `[B, T]`, and the bonus's state.
  """
  check_end(bonus.end)

  def flat(x: jax.Array, axis: int = 0) -> jax.Array:
    return jnp.reshape(x, (*x.shape[:axis], -1, *x.shape[axis + 2 :]))

  q_tm1, q_t = flat(q_tm1, 1), flat(q_t, 1)
  observation_tm1, observation_t = flat(observation[:, :-1]), flat(observation[:, 1:])
  at_destination = bonus.end == "destination"
  inputs = Inputs(
    td=flat(td, 1),
    a_tm1=flat(action[:, :-1]),
    q_tm1=q_tm1,
    q_t=q_t,
    observation_tm1=observation_tm1,
    observation_t=observation_t,
    mask=flat(mask),
    num_later=flat(jnp.cumsum(mask[:, ::-1], axis=1)[:, ::-1] - mask),
    q=q_t if at_destination else q_tm1,
    observation=observation_t if at_destination else observation_tm1,
  )
  r_int, state = bonus.compute(state, jax.lax.stop_gradient(inputs))
  return jnp.reshape(r_int, mask.shape), state


class Training(NamedTuple):
  """The training, in the learner, of networks for a bonus computed while acting.

  Attributes:
    init: (key) → state.
    update: (state, observation `[B, R, ...]`, action `[B, R]`, number of transitions
      int32 `[B]`) → (state, metrics), on windows of rows: row i is followed by row
      i + 1 for i below that number; later rows are padding.
    weights: (state) → the weights for acting.
  """

  init: Callable[[jax.Array], Any]
  update: Callable[
    [Any, jax.Array, jax.Array, jax.Array], tuple[Any, dict[str, jax.Array]]
  ]
  weights: Callable[[Any], Any]


class ActorBonus(NamedTuple):
  """A bonus computed while acting, and stored with each row as `r_int`.

  Attributes:
    end: `source`, `transition` or `destination`.
    init: () → state.
    begin_episode: (state) → state.
    observe: (weights, state, x_t, a_t, last) → (r_int of row t, state); `last` is true
      on an episode's last row, whose action is drawn but never taken. Without training,
      weights are `()`.
    training: of its networks in the learner; None: it has none.
    refresh: (current, new) → the weights for the rest of the episode. An episode starts
      with the new ones.
  """

  end: str
  init: Callable[[], Any]
  begin_episode: Callable[[Any], Any]
  observe: Callable[[Any, Any, jax.Array, jax.Array, jax.Array], tuple[jax.Array, Any]]
  training: Training | None = None
  refresh: Callable[[Any, Any], Any] = lambda held, fresh: fresh


class Bonus(ranges.Checked, abc.ABC):
  """The base of a frozen dataclass of a bonus's settings, which builds it.

  Attributes:
    min_members: the least number of members that never see the bonus.
  """

  min_members: ClassVar[int] = 1

  @abc.abstractmethod
  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> LearnerBonus | ActorBonus:
    """The bonus for encoded observations of this spec."""


def stateless(end: str, compute: Callable[[Inputs], jax.Array]) -> LearnerBonus:
  """A learner's bonus without a state, from (Inputs) → r_int `[N]`."""
  return LearnerBonus(
    end=end,
    init=lambda key: (),
    compute=lambda state, inputs: (compute(inputs), state),
  )


def of_values(end: str, compute: Callable[[Inputs], jax.Array]) -> LearnerBonus:
  """A stateless bonus that reads no observation."""
  return stateless(end, compute)._replace(needs_values_only=True)
