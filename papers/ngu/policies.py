"""Never Give Up with a reward: one policy against eight, at equal steps of each."""

import dataclasses
from typing import Annotated

from explorax import ranges
from explorax.papers import claims, types
from explorax.papers.ez import sparse

_AGENT = "ngu_dqn"


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; all others are those of the preset `ngu_dqn`."""

  size: types.Size = 20  # A uniform policy finds the goal in 0.3 % of the episodes.
  time_limit: ranges.PositiveInt = 100  # Steps of an episode.
  num_policies: Annotated[int, ranges.Range(ge=2)] = 8  # N, of the mixture.
  # Environment steps of each policy: N policies share one actor's N times as many.
  steps_per_policy: ranges.PositiveInt = 20_000
  eval_episodes: ranges.PositiveInt = 20
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  num_seeds: ranges.PositiveInt = 10
  seeds_per_task: ranges.PositiveInt = 5  # They run in one program.

  @property
  def environment(self) -> str:
    return f"jax:gridworld/{self.size},time_limit={self.time_limit}"


def _agents(config: Config) -> dict[str, types.Settings]:
  """Policy 0 is evaluated, whose β is 0 in a mixture."""
  return {
    f"N{num}": {
      "agent": _AGENT,
      "num_policies": num,
      "num_steps": num * config.steps_per_policy,
      "changes": [
        f"num_policies={num}",
        "evaluation_policy=0",
        # All of an episode, and no more: the search for neighbours computes over it.
        f"bonus.memory_capacity={config.time_limit + 1}",
      ],
    }
    for num in (1, config.num_policies)
  }


def _claims(config: Config) -> list[types.Claim]:
  """Two tests, corrected by Holm's method."""
  several, one = ({"num_policies": num} for num in (config.num_policies, 1))
  return claims.corrected(
    [
      claims.Compare(
        f"policy 0 of {config.num_policies} reaches the goal in more seeds than a "
        "single exploring policy",
        sparse.reaches,
        several,
        one,
        "shares of seeds {a:.2g} and {b:.2g}, {gap}",
        spec=".2f",
        kind="learning",
      ),
      claims.Compare(
        f"{config.num_policies} policies reach the goal in a greater share of the "
        "training episodes",
        sparse.share_of_training,
        several,
        one,
        "shares {a:.2g} and {b:.2g}, a difference of {gap}",
        spec=".2f",
        kind="ours",
      ),
    ]
  )


FIGURES = (
  types.Figure(
    name="ngu/policies",
    title="Never Give Up in a room with one reward: one policy and eight",
    source="Our own, of Badia et al. (2020), Never Give Up, section 4.1 and table 3",
    claim="the greedy policy of a mixture (β_0 = 0) earns more with many policies than "
    "with one. (Here at equal steps of each policy.)",
    config=Config(),
    quick=Config(
      size=5,
      time_limit=20,
      steps_per_policy=300,
      eval_episodes=2,
      num_seeds=1,
    ),
    tasks=lambda config: sparse.tasks(config, _agents(config)),
    compute=sparse.run,
    panels=lambda config: sparse.shares(
      {
        label.replace("N", "N = "): {"num_policies": agent["num_policies"]}
        for label, agent in _agents(config).items()
      }
    ),
    claims=_claims,
    caption="Small marks are seeds, large ones their means with 95 % t-intervals; the "
    "right axis is enlarged.",
    height=1.8,
    large=True,
  ),
)
