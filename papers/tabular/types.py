"""The interface of small learners: tables or linear functions, updated every step."""

from typing import Any, NamedTuple, Protocol

import jax

State = Any  # A pytree of arrays of fixed shapes.
Encoded = Any  # An observation encoded for a learner's tables or weights.


class Transition(NamedTuple):
  """One step, and the action chosen after it.

  Attributes:
    source: x_t, encoded by the learner.
    action: a_t, int32 `[]`.
    reward: r_{t+1}, float32 `[]`.
    discount: the environment's, 0 if the episode terminated and 1 otherwise, float32
      `[]`. The learner multiplies it by its own γ.
    destination: x_{t+1}, encoded; also at an episode's end.
    next_action: a_{t+1}, int32 `[]`, for learners that are `on_policy`: the action that
      the rule chooses at x_{t+1}, exploratory or not. It is also drawn at an episode's
      last observation, so that the update can bootstrap from it after a truncation.
    learns: bool `[]`; False: there was no such step (at an episode's start, or after
      the end of a run in a batch), and the learner's state does not change. Selecting
      between the states before and after would copy a table at every step.
  """

  source: Encoded
  action: jax.Array
  reward: jax.Array
  discount: jax.Array
  destination: Encoded
  next_action: jax.Array
  learns: jax.Array | bool = True


class Params(Protocol):
  """Parameters that do not affect shapes: a NamedTuple of scalars, for `jax.vmap`."""

  @property
  def discount(self) -> jax.Array | float:
    """γ, which also discounts the returns of a run."""


class Learner(Protocol):
  """Learns action values from single steps, in the order in which they happen.

  A frozen dataclass of the settings that determine shapes; every method is pure. The
  state contains the parameters, so that a batch of settings is a batch of states.
  """

  @property
  def num_members(self) -> int:
    """K."""

  @property
  def num_actions(self) -> int:
    """A."""

  @property
  def on_policy(self) -> bool:
    """Whether the update needs the next action.

    If so, the rule chooses it with the values before the update (Sutton and Barto,
    2018, sections 6.4 and 12.7); otherwise with those after it (section 6.5).
    """

  def init(self, key: jax.Array, params: Any) -> State:
    """The state before the first episode."""

  def begin_episode(self, state: State) -> State:
    """The state at an episode's start: traces are cleared."""

  def encode(self, observation: jax.Array) -> Encoded:
    """The index of a state, or its features; computed once per timestep."""

  def q_values(self, state: State, encoded: Encoded) -> jax.Array:
    """Each member's action values, float32 `[K, A]`."""

  def update(self, state: State, transition: Transition) -> State:
    """Learns from one step, if `transition.learns`."""
