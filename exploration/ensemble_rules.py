"""The rules that use what the members of an ensemble disagree on.

They mix the members' opinions (`MajorityVote`, `Ucb`) or follow one at a time
(`Thompson`, `QUcb`, `Ucb1`). Ties are always broken at random, uniformly.
"""

import dataclasses
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.exploration import members, rules, schedules, selection, types

_Selection = tuple[jax.Array, jax.Array, types.State]


@dataclasses.dataclass(frozen=True)
class MajorityVote(rules.Stateless):
  """The action that most members think best (Chen et al., 2017, algorithm 1)."""

  epsilon: float = 0.0  # Probability of a uniform action (the paper names none).

  def __post_init__(self):
    schedules.check_epsilon("MajorityVote", self.epsilon)

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    choice = selection.dither(key, selection.count_votes(q), self.epsilon)
    return choice.action, choice.prob, state


@dataclasses.dataclass(frozen=True)
class Ucb(rules.Stateless):
  """The greatest `mean + scale · std` over the members (Chen et al., 2017, alg. 2)."""

  scale: float = 0.1  # λ of the reported runs; 0 is greedy on the mean.
  ddof: int = 0  # 0: the population's deviation, 1: the sample's (not said which).
  epsilon: float = 0.0  # Probability of a uniform action (the paper names none).

  def __post_init__(self):
    schedules.check_epsilon("Ucb", self.epsilon)
    _check_scale("Ucb.scale", self.scale)
    if self.ddof not in (0, 1):
      raise ValueError(
        f"Ucb.ddof is {self.ddof}; use 0 for the population's standard deviation or "
        "1 for the sample's."
      )

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> types.State:
    _check_members("Ucb", num_members, self.ddof + 1)
    return super().init(key, num_members, num_actions, place)

  def select(
    self, key: jax.Array, q: jax.Array, state: types.State, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    bounds = selection.upper_confidence_bounds(q, self.scale, self.ddof)
    choice = selection.dither(key, bounds, self.epsilon)
    return choice.action, choice.prob, state


class _Following(rules.Stateless):
  """A rule that follows one member at a time, drawn uniformly at an episode's start."""

  ladder = 0.0  # Of ε over the actors: none, unless a rule has a field of that name.

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> "FollowingState":
    del num_actions
    drawn = members.init_thompson(key, num_members)
    power = schedules.ladder_power(self.ladder, place.actor_id, place.num_actors)
    return FollowingState(drawn, jnp.asarray(num_members, jnp.int32), power)

  def begin_episode(
    self, key: jax.Array, state: "FollowingState", env_steps: jax.Array
  ) -> "FollowingState":
    del env_steps
    return state._replace(followed=members.init_thompson(key, state.num_members))

  def policy(self, state: "FollowingState") -> jax.Array:
    return state.followed.member


class FollowingState(NamedTuple):
  """The member followed, of how many, and the power of ε that this actor takes.

  Attributes:
    followed: the member.
    num_members: int32 `[]`, to draw the next.
    power: float32 `[]`, see `schedules.ladder_power`.
  """

  followed: members.ThompsonState
  num_members: jax.Array
  power: jax.Array


@dataclasses.dataclass(frozen=True)
class Thompson(_Following):
  """Follows one member, drawn uniformly, greedily (Bootstrapped DQN).

  A new member is drawn at each episode's start, and every `period_steps` within it.
  """

  period_steps: int | None = None  # Agent steps; None: one member per episode.
  epsilon: float = 0.0  # Probability of a uniform action on top.
  ladder: float = 0.0  # As in EpsilonGreedy.

  def __post_init__(self):
    schedules.check_epsilon("Thompson", self.epsilon, ladder=self.ladder)
    if self.period_steps is not None and self.period_steps < 1:
      raise ValueError(
        f"Thompson.period_steps is {self.period_steps} agent steps; use at least 1, "
        "or None for one member per episode."
      )

  def select(
    self, key: jax.Array, q: jax.Array, state: FollowingState, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    chex.assert_rank(q, 2)
    followed = state.followed
    if self.period_steps is not None:
      key, key_member = jax.random.split(key)
      followed = members.redraw_member(
        key_member, followed, q.shape[0], self.period_steps
      )
    epsilon = jnp.power(self.epsilon, state.power)
    choice = selection.dither(key, q[followed.member], epsilon)
    return choice.action, choice.prob, state._replace(followed=followed)


@dataclasses.dataclass(frozen=True)
class QUcb(_Following):
  """Q+UCB (Flennerhag et al., 2020, appendix D.2): `argmax_a Q(a) + scale · σ_Q(a)`.

  The text does not say whose Q it is. The ablation differs from Bootstrapped DQN in
  nothing else, so Q is read as the member followed for the episode; σ_Q is the
  sample standard deviation over all members. (With the members' mean for Q, it is
  `Ucb` with ddof=1.)
  """

  scale: float = 1.0  # β (appendix D.2: the best of those tried).
  epsilon: float = 0.0  # Probability of a uniform action on top.

  def __post_init__(self):
    schedules.check_epsilon("QUcb", self.epsilon)
    _check_scale("QUcb.scale", self.scale)

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> FollowingState:
    _check_members("QUcb", num_members, 2)
    return super().init(key, num_members, num_actions, place)

  def select(
    self, key: jax.Array, q: jax.Array, state: FollowingState, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    bounds = q[state.followed.member] + self.scale * selection.member_std(q, ddof=1)
    choice = selection.dither(key, bounds, self.epsilon)
    return choice.action, choice.prob, state


class Ucb1RuleState(NamedTuple):
  """The arm followed (int32 `[]`) and the statistics of all of them."""

  arm: jax.Array
  arms: members.Ucb1State


@dataclasses.dataclass(frozen=True)
class Ucb1(rules.Stateless):
  """A bandit picks the member to follow for an episode (see `members.ucb1`).

  Each actor has a bandit of its own: n and n(k) count the environment steps that it
  took itself.
  """

  scale: float = 8.0  # η, in units of reward per step (appendix D.2: the best).
  epsilon: float = 0.0  # Probability of a uniform action on top.

  def __post_init__(self):
    schedules.check_epsilon("Ucb1", self.epsilon)
    _check_scale("Ucb1.scale", self.scale)

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    place: types.Place = types.ALONE,
  ) -> Ucb1RuleState:
    del key, num_actions, place
    return Ucb1RuleState(jnp.zeros((), jnp.int32), members.init_ucb1(num_members))

  def begin_episode(
    self, key: jax.Array, state: Ucb1RuleState, env_steps: jax.Array
  ) -> Ucb1RuleState:
    del env_steps
    return state._replace(arm=members.ucb1(key, state.arms, self.scale))

  def select(
    self, key: jax.Array, q: jax.Array, state: Ucb1RuleState, env_steps: jax.Array
  ) -> _Selection:
    del env_steps
    chex.assert_rank(q, 2)
    choice = selection.dither(key, q[state.arm], self.epsilon)
    return choice.action, choice.prob, state

  def observe(self, reward: jax.Array, state: Ucb1RuleState) -> Ucb1RuleState:
    return state._replace(arms=members.update_ucb1(state.arms, state.arm, reward))

  def policy(self, state: Ucb1RuleState) -> jax.Array:
    return state.arm


def _check_scale(name: str, scale: float) -> None:
  if not 0.0 <= scale < float("inf"):
    raise ValueError(f"{name} is {scale}; use a finite value of at least 0.")


def _check_members(rule: str, num_members: int, needed: int) -> None:
  if num_members < needed:
    raise ValueError(
      f"{rule} needs at least {needed} members for its standard deviation, but the "
      f"ensemble has {num_members}; use a larger ensemble."
    )
