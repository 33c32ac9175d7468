"""Paper 1's figure 4: εz-greedy with Rainbow and R2D2 on Atari-57.

With `--set game_settings=sticky=0.25` and Rainbow's agents alone it is figure 9.
"""

import dataclasses

from explorax import ranges
from explorax.environments import atari57
from explorax.papers import atari, types
from explorax.papers.ez import runs

_RAINBOW = {
  "rainbow_epsilon": "Rainbow, ε-greedy",
  "rainbow_ez": "Rainbow, εz-greedy",
  "rainbow_cts": "Rainbow, CTS",
}
_R2D2 = {
  "r2d2_sarsa_lambda": "R2D2, ε-greedy",
  "r2d2_ez": "R2D2, εz-greedy",
  "r2d2_sarsa_lambda_rnd": "R2D2, RND",
  "bootstrapped_r2d2": "bootstrapped R2D2",
}
_GAMES = tuple(atari57.references())


@dataclasses.dataclass(frozen=True)
class Config(atari.Config):
  """Settings of Rainbow's runs, and those in which R2D2's differ."""

  r2d2_steps: atari.Count = 7_500_000_000  # 30 billion frames.
  r2d2_eval_every: atari.Count = 75_000_000  # Ours.
  r2d2_seeds: ranges.PositiveInt = 3


def _tasks(config: Config) -> list[types.Task]:
  rainbow, r2d2 = (
    tuple(agent for agent in config.agents if agent in family)
    for family in (_RAINBOW, _R2D2)
  )
  of_r2d2 = dataclasses.replace(
    config,
    agents=r2d2,
    num_steps=config.r2d2_steps,
    eval_every=config.r2d2_eval_every,
    num_seeds=config.r2d2_seeds,
  )
  return [
    *atari.tasks(dataclasses.replace(config, agents=rainbow)),
    *atari.tasks(of_r2d2),
  ]


def _claims(config: Config) -> list[types.Claim]:
  made: list[types.Claim] = []
  for epsilon, ez, other in (tuple(_RAINBOW), tuple(_R2D2)[:3]):
    label = (_RAINBOW | _R2D2)[ez]
    made += [
      atari.above(
        f"{label}: a smaller human gap than ε-greedy",
        ez,
        epsilon,
        _GAMES,
        atari.human_gap,
        less=True,
      ),
      atari.above(
        f"{label}: a higher median than with an intrinsic reward",
        ez,
        other,
        _GAMES,
        atari.median,
      ),
    ]
  return made


FIGURES = (
  types.Figure(
    name="ez/atari",
    title="εz-greedy with Rainbow and R2D2 on Atari-57",
    source=f"{runs.PAPER}, figure 4",
    claim="εz-greedy improves performance on the hard exploration tasks, and so the "
    "human gap, with little to no loss on the rest of the suite; intrinsic motivation "
    "loses much of it.",
    config=Config(
      games=_GAMES,
      agents=(*_RAINBOW, *_R2D2),
      num_steps=50_000_000,  # 200 million frames.
      eval_every=250_000,  # A million frames (appendix D).
      num_seeds=5,
    ),
    quick=Config(
      games=("venture",),
      agents=("rainbow_epsilon", "rainbow_ez", "r2d2_ez"),
      agent_settings=("min_replay_size=100", "replay_capacity=1000", "batch_size=1"),
      r2d2_steps=120,
      r2d2_eval_every=60,
      r2d2_seeds=1,
      **atari.QUICK,
    ),
    tasks=_tasks,
    compute=atari.compute,
    panels=lambda config: [
      [
        atari.curves(title, family, _GAMES, of, ylabel)
        for of, ylabel in (
          (atari.median, "median human-normalised score"),
          (atari.human_gap, "human gap"),
        )
      ]
      for title, family in (("Rainbow", _RAINBOW), ("R2D2", _R2D2))
    ],
    claims=_claims,
    large=True,
  ),
)
