"""Paper 2's figures 3 to 5 and table 3: Never Give Up on Atari."""

from explorax.environments import atari57
from explorax.papers import atari, types

# Table 3's games, and the six hard ones of figure 4.
_DENSE = ("pong", "qbert", "breakout", "space_invaders", "beam_rider")
_HARD = atari57.HARD_EXPLORATION
_THREE = ("montezuma_revenge", "pitfall", "private_eye")
_NO_RND = "ngu@bonus.rnd=false"
# Without extrinsic rewards, β_0 = 0 would be a policy without any: the most exploratory
# policy is evaluated.
_NO_REWARD = "ngu@reward_scale=0@evaluation_policy=-1"
_VARIANTS = {
  "ngu": "NGU (N = 32)",
  "ngu@num_policies=2": "N = 2",
  "ngu@num_policies=8": "N = 8",
  "ngu@num_policies=16": "N = 16",
  "ngu@cross_mixture_ratio=0.5": "CMR = 0.5",
  "ngu@beta=0.2": "β = 0.2",
  "ngu@beta=0.5": "β = 0.5",
  _NO_RND: "without RND",
  _NO_REWARD: "without $r^e$",
}
_BASELINES = {
  "ngu": "NGU (N = 32)",
  "ngu@num_policies=1": "NGU (N = 1)",
  "ngu@num_policies=1@bonus.rnd=false": "NGU (N = 1) − RND",
  "r2d2_rnd": "R2D2 + RND",
  "r2d2_retrace": "R2D2 (Retrace)",
}
_FIGURE_5 = {**_BASELINES, _NO_RND: "NGU (N = 32) − RND"}


def _claims(config: atari.Config) -> list[types.Claim]:
  def hard(claim: str, agent: str, other: str) -> types.Claim:
    return atari.above(f"hard games: {claim}", agent, other, _HARD)

  return [
    hard("NGU is above R2D2 + RND", "ngu", "r2d2_rnd"),
    hard("NGU is above R2D2 (Retrace)", "ngu", "r2d2_retrace"),
    *(
      atari.above(
        f"three hard games: NGU is above {_VARIANTS[other]}", "ngu", other, _THREE
      )
      for other in _VARIANTS
      if other not in ("ngu", _NO_REWARD)
    ),
    atari.above(
      "dense games: NGU is above NGU without extrinsic rewards",
      "ngu",
      _NO_REWARD,
      _DENSE,
    ),
  ]


FIGURES = (
  types.Figure(
    name="ngu/atari",
    title="Never Give Up on Atari: its parts, and its baselines",
    source="Badia et al. (2020), Never Give Up, figures 3 to 5 and table 3",
    claim="NGU has a higher mean score than its baselines on the six hard exploration "
    "games; on three of them, more policies, β = 0.3, RND and no shared data are "
    "best; on dense games only the extrinsic reward matters.",
    config=atari.Config(
      games=(*_DENSE, *_HARD),
      agents=tuple(dict.fromkeys([*_VARIANTS, *_BASELINES])),
      num_steps=8_750_000_000,  # 35 billion frames.
      eval_every=87_500_000,  # Ours.
      num_seeds=3,
    ),
    quick=atari.Config(
      games=("pong", "pitfall", "montezuma_revenge"),
      agents=("ngu", "r2d2_retrace"),
      agent_settings=atari.SHORT_SEQUENCES,
      **atari.QUICK,
    ),
    tasks=atari.tasks,
    compute=atari.compute,
    panels=lambda config: [
      [
        atari.ends("figure 3: dense rewards", _VARIANTS, _DENSE),
        atari.ends("figure 3: hard", _VARIANTS, _THREE),
        atari.curves("figure 4: six hard games", _BASELINES, _HARD),
      ],
      [
        atari.curves("figure 5: Pitfall!", _FIGURE_5, ("pitfall",)),
        atari.curves(
          "figure 5: Montezuma's Revenge", _FIGURE_5, ("montezuma_revenge",)
        ),
        atari.curves(
          "figure 4: six hard games",
          _BASELINES,
          _HARD,
          atari.median,
          "median human-normalised score",
        ),
      ],
    ],
    claims=_claims,
    large=True,
    height=4.0,
  ),
)
