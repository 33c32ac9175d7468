"""The contracts of the house: rows, time, probability, and what an agent is.

Rows and time. Row t of an episode with T transitions is

    (x_t, a_t, r_{t+1}, discount_{t+1}, extras_t),    t = 0, ..., T - 1,

the observation on which a_t was chosen, and what the environment answered. One
more row, t = T, holds the last observation: its action, reward and discount are
zero and its `mask` is 0, because no transition starts there, but its observation
and extras (the novelty of x_T, for one) are real. Padding rows are all zero, so
their mask is 0 too. `discount_t` is the environment's (0 at a termination, 1 at
a truncation); the learner multiplies γ in.

Probability. `behaviour_prob` (μ_t) is the probability with which the stored action
was really drawn, given the actor's state: 1 in the middle of an εz repeat, one
over the number of tied actions in a tied vote.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import dm_env
import jax
import jax.numpy as jnp

from explorax.agents import ranges
from explorax.environments import specs

# A pytree of arrays.
Params = Any
State = Any

# A jax.Array; numpy's until it enters a jitted function.
Array = Any


# What an agent knows of its environment.
EnvironmentSpec = specs.EnvironmentSpec


class ActorParams(NamedTuple):
  """What an actor needs to act.

  Attributes:
    weights: the learner's `params(state)`.
    env_steps: int32 scalar, environment steps taken so far by all actors, so that
      schedules need no clock of their own.
  """

  weights: Params
  env_steps: Array


class ActorCore(NamedTuple):
  """A policy for one environment as three pure functions (vmap them for more).

  Everything that lasts between steps is in the state; `timestep.first()` resets
  what belongs to an episode. Runners call `select_action` on the LAST timestep
  too, drop its action and keep its extras.

  Attributes:
    init: (key, actor_id, num_actors) → state.
    select_action: (params: ActorParams, timestep, state) → (action int32 [], state).
      `timestep` is a `dm_env.TimeStep` of arrays, its observation encoded, its
      reward and discount 0 and 1 where the environment gave None.
    extras: (state) → dict of what replay stores beside the row just acted on. The
      key `policy` (int32 []) is the index of the policy being followed.
  """

  init: Callable[[jax.Array, Array | int, int], State]
  select_action: Callable[
    [ActorParams, dm_env.TimeStep, State], tuple[jax.Array, State]
  ]
  extras: Callable[[State], dict[str, jax.Array]]


class Sample(NamedTuple):
  """A batch of windows from replay, as the learner sees it.

  Replay hands out frames, where observations join several: `observation` is then
  `[B, num_frames − 1 + R, H, W, C]`, until `join_frames` makes them observations.

  Attributes:
    rows: column name → `[B, R, ...]`, R being `ReplaySpec.window_rows`: always
      `observation`, `action` (int32), `reward`, `discount`, `mask` (float32), and
      the extras that `ReplaySpec.extras` names.
    first: column name → `[B, ...]`, the extras kept only at a window's first row.
    probabilities: float32 `[B]`, with which each window was drawn.
    population: int32 scalar, how many windows replay held.
  """

  rows: Mapping[str, Array]
  first: Mapping[str, Array]
  probabilities: Array
  population: Array


def join_frames(sample: Sample, num_frames: int) -> Sample:
  """Frames `[B, num_frames − 1 + R, H, W, C]` → observations `[B, R, H, W, …]`.

  Each observation joins the newest `num_frames` along the channels, the oldest first.
  In the first rows of padding, the last frames before it are still to be seen.
  """
  if num_frames == 1:
    return sample
  frames = jnp.asarray(sample.rows["observation"])
  num_rows = frames.shape[1] - num_frames + 1
  shifted = [frames[:, i : i + num_rows] for i in range(num_frames)]
  rows = {**sample.rows, "observation": jnp.concatenate(shifted, axis=-1)}
  return sample._replace(rows=rows)


class LearnerOutput(NamedTuple):
  """What an update returns beside its state.

  Attributes:
    priorities: float32 `[B]`, the windows' new priorities (before the exponent).
    metrics: name → float32 scalar. `loss` is always there; an update whose loss or
      gradient is not finite leaves the state as it was and reports `finite` = 0.
  """

  priorities: jax.Array
  metrics: dict[str, jax.Array]


Update = Callable[[State, Sample], tuple[State, LearnerOutput]]


class TargetNetwork(NamedTuple):
  """A core's update in two parts, for a host that counts updates.

  Between two copies the target network is not touched, which saves its memory traffic;
  and a copy made on the host is a reference to the same arrays.

  Attributes:
    whole: the core's update, to which the parts add up.
    period: learner updates between two copies.
    update: as the whole, but for the copy.
    copy: (state) → the state whose target network is the online one. To be called
      between an update that is a multiple of the period and the next one.
  """

  whole: Update
  period: int
  update: Update
  copy: Callable[[State], State]


class LearnerCore(NamedTuple):
  """Learning as three pure functions; runners jit `update`, or its part, once.

  Attributes:
    init: (key) → state.
    update: (state, Sample) → (state, LearnerOutput).
    params: (state) → the weights that actors need.
    target: `update` in two parts; None where it has only one. One whose `whole` is
      another function than `update` is not used.
  """

  init: Callable[[jax.Array], State]
  update: Update
  params: Callable[[State], Params]
  target: TargetNetwork | None = None


@dataclasses.dataclass(frozen=True)
class ReplaySpec:
  """What replay stores and how it is sampled: data only.

  A window is `burn_in + length + bootstrap` consecutive rows of one episode, its
  first row at a multiple of `period`. The transitions of the `length` rows after
  the burn-in are trained on (at an episode's start there is no burn-in: those rows
  are trained on as well); the `bootstrap` rows after them only supply targets. No
  window crosses an episode's end: what is missing there is zero padding, and
  windows are made until every transition is trained on in at least one.

  n-step transitions are `length=1, bootstrap=n, period=1`.
  """

  capacity: int  # Environment steps.
  min_size: int  # Environment steps before the first update.
  batch_size: int  # Windows in a batch.
  updates_per_step: float  # Learner updates per environment step.
  length: int = 1  # Rows.
  bootstrap: int = 1  # Rows.
  burn_in: int = 0  # Rows.
  period: int = 1  # Rows.
  priority_exponent: float = 0.0  # 0: uniform.
  # η of a new window's priority where the actor's extra `td_error` decides it
  # (`wiring.windows.initial_priority`); None: it is 1.
  priority_eta: float | None = None
  num_frames: int = 1  # Joined in an observation; a row stores the newest alone.
  extras: tuple[str, ...] = ()  # Extras stored on every row.
  first_row_extras: tuple[str, ...] = ()  # Extras kept at a window's first row only.

  def __post_init__(self):
    ranges.at_least(self, 1, "capacity", "batch_size", "num_frames")
    ranges.at_least(self, 1, "length", "bootstrap", "period")
    ranges.at_least(self, 0, "burn_in")
    ranges.positive(self, "updates_per_step")
    ranges.not_negative(self, "priority_exponent")
    if self.period > self.length:
      raise ValueError(
        f"ReplaySpec.period is {self.period}, beyond its length of {self.length}: "
        "transitions in between would never be trained on; use a period of at "
        f"most {self.length}."
      )
    if self.capacity < self.batch_size * self.period:
      raise ValueError(
        f"a replay capacity of {self.capacity} environment steps holds fewer windows "
        f"than the batch size of {self.batch_size}; raise the capacity to at least "
        f"{self.batch_size * self.period} or lower the batch size."
      )
    if self.min_size > self.capacity:
      raise ValueError(
        f"min_size is {self.min_size} environment steps, but replay never holds more "
        f"than its capacity of {self.capacity}: learning would never start; lower it."
      )

  @property
  def window_rows(self) -> int:
    return self.burn_in + self.length + self.bootstrap

  @property
  def window_frames(self) -> int:
    """The rows whose frames a window's observations show."""
    return self.window_rows + self.num_frames - 1

  @property
  def max_windows(self) -> int:
    """How many windows replay holds: one starts every `period` steps."""
    return self.capacity // self.period


# (held, fresh) → the weights that an actor goes on with in mid-episode.
Refresh = Callable[[Params, Params], Params]


class Encoding(Protocol):
  """How an observation is stored: encoded once, when it arrives."""

  spec: dm_env.specs.Array

  def __call__(self, observation: Any) -> Any: ...

  def on_device(self, observation: jax.Array) -> jax.Array:
    """The same within a jitted function."""
    ...


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
  """An agent: three pure parts and the declaration that joins them.

  Compared by identity: programs are compiled once for each agent (`sharing`).

  Attributes:
    config: the frozen dataclass that the agent was made from.
    spec: the environment's.
    encoding: observation → what the actor sees and replay stores.
    extras_spec: the shapes and dtypes of the extras that replay stores.
    actor: (evaluation: bool) → ActorCore.
    learner: the LearnerCore.
    replay: the ReplaySpec.
    actor_update_period: environment steps between two fetches of the weights.
    policy_names: the group of each policy index that an actor may follow (for
      instance `exploiter` or `explorer`); returns are reported by group where
      there is more than one.
    refresh: which of new weights an actor takes in mid-episode; None: all.
  """

  config: Any
  spec: EnvironmentSpec
  encoding: Encoding
  extras_spec: Mapping[str, jax.ShapeDtypeStruct]
  actor: Callable[..., ActorCore]
  learner: LearnerCore
  replay: ReplaySpec
  actor_update_period: int = 1
  policy_names: tuple[str, ...] = ("policy",)
  refresh: Refresh | None = None


def extras_spec(core: ActorCore) -> dict[str, jax.ShapeDtypeStruct]:
  """The shapes and dtypes of what a core's `extras` returns, without computing it."""
  extras = jax.eval_shape(
    lambda key: core.extras(core.init(key, 0, 1)), jax.random.PRNGKey(0)
  )
  return {
    name: jax.ShapeDtypeStruct(value.shape, value.dtype)
    for name, value in extras.items()
  }
