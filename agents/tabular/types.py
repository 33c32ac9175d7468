"""What a small learner is: a table or a linear function that learns at every step."""

from typing import Any, NamedTuple, Protocol

import jax

State = Any  # A pytree of arrays of fixed shapes.
Encoded = Any  # An observation as a learner's tables or weights take it.


class Transition(NamedTuple):
  """One step, and the action chosen after it.

  Attributes:
    source: x_t, encoded by the learner.
    action: a_t, int32 `[]`.
    reward: r_{t+1}, float32 `[]`.
    discount: the environment's, 0 where the episode terminated and 1 elsewhere,
      float32 `[]`. The learner multiplies it by its own γ.
    destination: x_{t+1}, encoded; the episode's last one too.
    next_action: a_{t+1}, int32 `[]`, for learners that are `on_policy`: what the rule
      chooses at x_{t+1}, explores or not. It is drawn at an episode's last
      observation as well, so that an episode cut short can bootstrap from it.
    learns: bool `[]`; False: there was no such step (at an episode's start, or when a
      run of a batch is over), and the learner's state stays as it is. A choice between
      the states before and after would copy a table at every step.
  """

  source: Encoded
  action: jax.Array
  reward: jax.Array
  discount: jax.Array
  destination: Encoded
  next_action: jax.Array
  learns: jax.Array | bool = True


class Params(Protocol):
  """What only decides values: a NamedTuple of scalars, which `jax.vmap` may batch."""

  @property
  def discount(self) -> jax.Array | float:
    """γ, by which the returns of a run are discounted as well."""


class Learner(Protocol):
  """Learns action values from single steps, in the order in which they happen.

  It is a frozen dataclass of what decides shapes; every method is pure. The state
  holds the parameters, so that a batch of settings is a batch of states.
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

    It is then chosen by the values before the update (Sutton and Barto, 2018, sections
    6.4 and 12.7); otherwise by those after it (section 6.5).
    """

  def init(self, key: jax.Array, params: Any) -> State:
    """The state before the first episode."""

  def begin_episode(self, state: State) -> State:
    """The state at an episode's start: traces are cleared."""

  def encode(self, observation: jax.Array) -> Encoded:
    """The index of a state, or features: computed once for each timestep."""

  def q_values(self, state: State, encoded: Encoded) -> jax.Array:
    """Each member's action values, float32 `[K, A]`."""

  def update(self, state: State, transition: Transition) -> State:
    """Learns from one step, if `transition.learns`."""
