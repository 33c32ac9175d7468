"""Paper 4's figure 3: TDU with R2D2 on the hard games of Atari."""

from explorax.environments import atari57
from explorax.papers import atari, types
from explorax.papers.tdu import runs

_HARD = (*atari57.HARD_EXPLORATION, "tennis")
_AGENTS = {
  "tdu_r2d2": "TDU-R2D2, priors",
  "tdu_r2d2_no_prior": "TDU-R2D2",
  "bootstrapped_r2d2_peng": "bootstrapped R2D2",
  "r2d2_peng": "R2D2",
}


def _claims(config: atari.Config) -> list[types.Claim]:
  places = {
    "Montezuma's Revenge": ("montezuma_revenge",),
    "tennis": ("tennis",),
    "all hard games": _HARD,
  }
  return [
    atari.above(f"{place}: TDU is above {_AGENTS[other]}", agent, other, games)
    for place, games in places.items()
    for agent, other in (
      ("tdu_r2d2_no_prior", "r2d2_peng"),
      ("tdu_r2d2_no_prior", "bootstrapped_r2d2_peng"),
    )
  ]


FIGURES = (
  types.Figure(
    name="tdu/atari",
    title="TDU with R2D2 on the hard games of Atari",
    source=f"{runs.PAPER}, figure 3",
    claim="TDU raises the mean score over the exploration games by 30 % compared to "
    "R2D2 and bootstrapped R2D2, has significantly higher returns in Montezuma's "
    "Revenge, and alone reaches the maximal return in tennis.",
    config=atari.Config(
      games=_HARD,
      agents=tuple(_AGENTS),
      num_steps=5_000_000_000,  # "20 billions steps" (appendix E.2), taken as frames.
      eval_every=50_000_000,  # Ours.
      num_seeds=8,
    ),
    quick=atari.Config(
      games=("tennis",),
      agents=("tdu_r2d2_no_prior", "r2d2_peng"),
      agent_settings=(*atari.SHORT_SEQUENCES, "burn_in=0"),
      **atari.QUICK,
    ),
    tasks=atari.tasks,
    compute=atari.compute,
    panels=lambda config: [
      [
        atari.curves(title, _AGENTS, games)
        for title, games in (
          ("Montezuma's Revenge", ("montezuma_revenge",)),
          ("tennis", ("tennis",)),
          ("seven hard games", _HARD),
        )
      ]
    ],
    claims=_claims,
    large=True,
  ),
)
