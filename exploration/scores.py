"""Scores from all members of an ensemble: mean, UCB and vote."""

import dataclasses
from typing import Annotated, Any

import jax

from explorax import ranges
from explorax.exploration import rules, schedules, selection, types


@dataclasses.dataclass(frozen=True)
class Greedy(rules.Score):
  """Greedy on the mean over the members, or over some of them in a row.

  Agents are evaluated with this rule; the literature adds a small ε
  (`EpsilonGreedy(0.001)`).
  """

  # Number of averaged members; None: all after the first.
  num_members: ranges.PositiveInt | None = None
  # Ties: "random", or "first", the action of the lowest index.
  ties: Annotated[str, ranges.OneOf(selection.TIES)] = "random"
  # Index of the first averaged member; K averages the explorers after K exploiters.
  first: ranges.NonNegativeInt = 0

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> types.State:
    if self.first + (self.num_members or 1) > num_members:
      raise ValueError(
        f"Greedy.num_members is {self.num_members} and Greedy.first {self.first}, but "
        f"the ensemble has only {num_members} members; use at most that many."
      )
    return super().init(key, num_members, num_actions, actor)

  def score(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    del key, env_steps
    last = None if self.num_members is None else self.first + self.num_members
    return selection.mean_over_members(q[self.first : last]), state


@dataclasses.dataclass(frozen=True)
class MajorityVote(rules.Score):
  """The action with the most votes of members (Chen et al., 2017, algorithm 1)."""

  def score(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    del key, env_steps
    return selection.count_votes(q), state


@dataclasses.dataclass(frozen=True)
class Ucb(rules.Wrapper, rules.Score):
  """The greatest `score + scale · std` over the members.

  On the mean over the members it is algorithm 2 of Chen et al. (2017), where scale is
  λ = 0.1. On the values of Thompson's member, with ddof=1, it is Q+UCB (Flennerhag et
  al., 2020, appendix D.2): `argmax_a Q(a) + β σ_Q(a)`, β = 1. The text does not say
  whose Q it is. Since the ablation otherwise equals Bootstrapped DQN, Q is read as the
  values of the member followed for the episode.
  """

  scale: schedules.NonNegative = 0.1  # 0 adds nothing.
  # 0: the population's deviation, 1: the sample's (not said which).
  ddof: Annotated[int, ranges.OneOf((0, 1))] = 0
  of: rules.Score = dataclasses.field(default_factory=Greedy)

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> types.State:
    if num_members <= self.ddof:
      raise ValueError(
        f"Ucb needs at least {self.ddof + 1} members for its standard deviation, but "
        f"the ensemble has {num_members}; use a larger ensemble."
      )
    return super().init(key, num_members, num_actions, actor)

  def score(
    self, key: jax.Array, q: jax.Array, state: Any, env_steps: jax.Array
  ) -> tuple[jax.Array, Any]:
    scores, state = self.of.score(key, q, state, env_steps)
    scale = schedules.at(self.scale, env_steps)
    return scores + scale * selection.member_std(q, self.ddof), state
