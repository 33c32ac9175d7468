"""The contracts between agents and runners: rows, time, probability, agents.

Rows and time. Row t of an episode with T transitions is

    (x_t, a_t, r_{t+1}, discount_{t+1}, extras_t),    t = 0, ..., T - 1,

the observation on which a_t was chosen, and the environment's answer. One more row,
t = T, contains the last observation: its action, reward and discount are zero and its
`mask` is 0, because no transition starts there, but its observation and extras (for
example the novelty of x_T) are real. Padding rows are all zero, so their mask is also
0. `discount_t` is the environment's (0 at a termination, 1 at a truncation); the
learner multiplies it by γ.

Probability. `behaviour_prob` (μ_t) is the probability with which the stored action was
drawn, given the actor's state: 1 within an εz repeat, and one over the number of tied
actions in a tied vote.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.environments import encodings, specs
from explorax.exploration import schedules

# A pytree of arrays.
Params = Any
State = Any

# A jax.Array, or a numpy array outside jitted functions.
Array = Any


# An agent's information about its environment.
EnvironmentSpec = specs.EnvironmentSpec


class ActorParams(NamedTuple):
  """The inputs of an actor.

  Attributes:
    weights: the learner's `params(state)`.
    env_steps: int32 scalar, environment steps taken so far by all actors, for
      schedules.
  """

  weights: Params
  env_steps: Array


class ActorCore(NamedTuple):
  """A policy for one environment as three pure functions (vmap them for more).

  The state contains everything that lasts between steps; `timestep.first()` resets the
  part that belongs to an episode. Runners also call `select_action` on the LAST
  timestep, ignore its action and keep its extras.

  Attributes:
    init: (key, actor_id, num_actors) → state.
    select_action: (params: ActorParams, timestep, state) → (action int32 [], state).
      `timestep` is a `dm_env.TimeStep` of arrays with an encoded observation; at an
      episode's start its reward is 0 and its discount 1 instead of None.
    extras: (state) → dict of what replay stores with the last row. The key `policy`
      (int32 []) is the index of the current policy.
    q_values: (params, timestep, state) → float32 `[A]`, the action values that the
      greedy policy maximises, for the arguments of the next `select_action`; None if
      the agent has none.
  """

  init: Callable[[jax.Array, Array | int, int], State]
  select_action: Callable[
    [ActorParams, dm_env.TimeStep, State], tuple[jax.Array, State]
  ]
  extras: Callable[[State], dict[str, jax.Array]]
  q_values: Callable[[ActorParams, dm_env.TimeStep, State], jax.Array] | None = None


class Sample(NamedTuple):
  """A batch of windows from replay, as the learner sees it.

  If observations consist of several frames, replay returns frames: `observation` is
  then `[B, num_frames − 1 + R, H, W, C]`; `join_frames` makes observations of it.

  Attributes:
    rows: column name → `[B, R, ...]`, where R is `ReplaySpec.window_rows`: always
      `observation`, `action` (int32), `reward`, `discount`, `mask` (float32), and the
      extras in `ReplaySpec.extras`.
    first: column name → `[B, ...]`, the extras stored only for a window's first row.
    probabilities: float32 `[B]`, with which each window was drawn.
    population: int32 scalar, the number of windows in replay.
  """

  rows: Mapping[str, Array]
  first: Mapping[str, Array]
  probabilities: Array
  population: Array


def join_frames(
  frames: Array, num_rows: int, chosen: jax.Array | None = None
) -> jax.Array:
  """Frames `[B, num_frames − 1 + R, H, W, C]` → observations `[B, R, H, W, …]`.

  Each observation joins the newest `num_frames` along the channels, oldest first. The
  first rows of padding still contain the last frames before it. Observations of a
  single frame are returned unchanged.

  Args:
    frames: the column `observation` of a sample.
    num_rows: R.
    chosen: int32 `[B, K]`, the rows whose observations are returned, `[B, K, ...]`;
      None: all of them. On a CPU, joining 64 observations of 84×84 takes 2 ms.
  """
  frames = jnp.asarray(frames)
  num_frames = frames.shape[1] - num_rows + 1
  if chosen is None:
    shifted = [frames[:, i : i + num_rows] for i in range(num_frames)]
  else:
    windows = jnp.arange(frames.shape[0])[:, None]
    shifted = [frames[windows, chosen + i] for i in range(num_frames)]
  return shifted[0] if len(shifted) == 1 else jnp.concatenate(shifted, axis=-1)


class LearnerOutput(NamedTuple):
  """An update's result besides its state.

  Attributes:
    priorities: float32 `[B]`, the windows' new priorities (before the exponent).
    metrics: name → float32 scalar, including `loss`. An update whose loss or gradient
      is not finite does not change the state and reports `finite` = 0.
  """

  priorities: jax.Array
  metrics: dict[str, jax.Array]


Update = Callable[[State, Sample], tuple[State, LearnerOutput]]


class LearnerCore(NamedTuple):
  """Learning as pure functions; runners jit `update` once.

  Attributes:
    init: (key) → state.
    update: (state, Sample) → (state, LearnerOutput). It does not change the target
      network, which saves memory traffic.
    params: (state) → the weights that actors need.
    copy_target: (state) → the state with the online network as target network. Runners
      call it between every `target_period`-th update and the next one. None: there is
      no target network, or `update` copies it.
    target_period: learner updates between two copies.
    metrics: the names of the metrics of an update, which are columns of a run's files.
  """

  init: Callable[[jax.Array], State]
  update: Update
  params: Callable[[State], Params]
  copy_target: Callable[[State], State] | None = None
  target_period: int = 1
  metrics: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ReplaySpec(ranges.Checked):
  """What replay stores and how it is sampled: data only.

  A window is `burn_in + length + bootstrap` consecutive rows of one episode, whose
  first row is at a multiple of `period`. The learner trains on the transitions of the
  `length` rows after the burn-in (an episode's start has no burn-in: the learner also
  trains on those rows); the `bootstrap` rows after them only supply targets. No window
  crosses an episode's end: missing rows are zero padding, and windows are made until
  every transition is trained on in at least one of them.

  n-step transitions are `length=1, bootstrap=n, period=1`.
  """

  capacity: ranges.PositiveInt  # Environment steps.
  min_size: int  # Environment steps before the first update.
  batch_size: ranges.PositiveInt  # Windows.
  updates_per_step: ranges.PositiveFloat  # Learner updates per environment step.
  length: ranges.PositiveInt = 1  # Rows.
  bootstrap: ranges.PositiveInt = 1  # Rows.
  burn_in: ranges.NonNegativeInt = 0  # Rows.
  period: ranges.PositiveInt = 1  # Rows.
  priority_exponent: ranges.NonNegativeFloat = 0.0  # 0: uniform.
  # Joined in an observation; a row stores only the newest.
  num_frames: ranges.PositiveInt = 1
  extras: tuple[str, ...] = ()  # Extras stored on every row.
  first_row_extras: tuple[str, ...] = ()  # Extras stored for a window's first row only.
  # Extras that `Agent.initial_priority` reads. Replay does not store them for it.
  priority_extras: tuple[str, ...] = ()

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.period > self.length:
      raise ValueError(
        f"sequence_period is {self.period}, beyond the length of {self.length}: the "
        "learner would never train on transitions in between; use a period of at "
        f"most {self.length}."
      )
    if self.capacity < self.batch_size * self.period:
      raise ValueError(
        f"replay_capacity is {self.capacity} environment steps, which hold fewer "
        f"windows than batch_size, {self.batch_size}; raise it to at least "
        f"{self.batch_size * self.period}, or lower batch_size."
      )
    if self.min_size > self.capacity:
      raise ValueError(
        f"min_replay_size is {self.min_size} environment steps, but replay never holds "
        f"more than its capacity of {self.capacity}; lower it."
      )

  @property
  def window_rows(self) -> int:
    return self.burn_in + self.length + self.bootstrap

  @property
  def window_frames(self) -> int:
    """The number of rows whose frames are in a window's observations."""
    return self.window_rows + self.num_frames - 1

  @property
  def max_windows(self) -> int:
    """The number of windows in replay: one starts every `period` steps."""
    return self.capacity // self.period


# (current, new) → the weights that an actor uses for the rest of the episode.
Refresh = Callable[[Params, Params], Params]

Rows = Mapping[str, Array]  # Column name → values.
# (columns `[N, R, ...]` of N new windows, bool `[N]`: whether each starts an episode) →
# their priorities before the exponent, float32 `[N]`. The columns are action, reward,
# discount, mask, and `ReplaySpec.priority_extras`; padding is 0.
InitialPriority = Callable[[Rows, Array], jax.Array]


# How observations are stored: they are encoded once, on arrival.
Encoding = encodings.OneHotIndex | encodings.Dense


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
  """An agent: three pure parts and the declaration that joins them.

  Agents compare by identity, so that programs are compiled once per agent.

  Attributes:
    config: the frozen dataclass that the agent was made from.
    spec: the environment's.
    encoding: observation → what the actor gets and replay stores.
    extras_spec: the shapes and dtypes of the extras that replay stores.
    actor: (evaluation: bool) → ActorCore.
    learner: the LearnerCore.
    replay: the ReplaySpec.
    actor_update_period: environment steps between two fetches of the weights.
    policy_names: the group of each policy index that an actor may follow (for example
      `exploiter` or `explorer`); if there are several groups, returns are reported by
      group.
    refresh: combines current and new weights within an episode; None: takes the new.
    initial_priority: the priorities of new windows, from what the actor has stored;
      None: they are 1.
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
  initial_priority: InitialPriority | None = None

  def parameters(self, env_steps: int, num_updates: int) -> dict[str, float]:
    """The settings that may change over time, for logs.

    The learner's settings, such as the learning rate and β, are at this number of
    updates, and the exploration rule's, such as ε, at this number of environment
    steps. In the first `random_steps` of a run, ε is 1.
    """
    rule = schedules.current(getattr(self.config, "exploration", None), env_steps)
    if env_steps < getattr(self.config, "random_steps", 0):
      rule["epsilon"] = 1.0
    return schedules.current(self.config, num_updates) | rule


def extras_spec(core: ActorCore) -> dict[str, jax.ShapeDtypeStruct]:
  """The shapes and dtypes of what a core's `extras` returns, without computing it."""
  extras = jax.eval_shape(
    lambda key: core.extras(core.init(key, 0, 1)), jax.random.PRNGKey(0)
  )
  return {
    name: jax.ShapeDtypeStruct(value.shape, value.dtype)
    for name, value in extras.items()
  }
