"""Paper 3: UCB exploration via Q-ensembles (Chen et al., 2017)."""

from explorax import exploration
from explorax.agents.bonuses import infogain
from explorax.agents.targets import one_step
from explorax.experiments.presets import dqn, types

# Ten heads on one torso, with double Q-learning. The paper has settings for Atari only;
# small problems use bsuite's.
_HEADS = types.Pair(dqn.SMALL, dqn.ENSEMBLE_ATARI).replace(
  num_members=10, shared_torso=True, target=one_step.DoubleQ()
)
# Off Atari as `ucb/parts` chose, in Deep Sea: with the paper's λ it does not explore.
_UCB = _HEADS.replace(
  exploration=types.Pair(exploration.Ucb(scale=10.0), exploration.Ucb(scale=0.1)),
  prior_scale=types.Pair(3.0, 0.0),
)

PRESETS = (
  dqn.preset(
    "bootstrapped_dqn_no_prior",
    "ten heads on one torso without priors, one followed per episode",
    "Osband et al., 2016, as in " + dqn.PAPER_3,
    _HEADS.replace(exploration=exploration.Thompson()),
  ),
  dqn.preset(
    "ensemble_voting",
    "the majority vote of ten heads on one torso",
    dqn.PAPER_3 + ", algorithm 1",
    _HEADS.replace(exploration=exploration.MajorityVote()),
  ),
  dqn.preset(
    "ucb",
    "the upper confidence bound over ten heads on one torso",
    dqn.PAPER_3 + ", algorithm 2",
    _UCB,
  ),
  dqn.preset(
    "ucb_infogain",
    "ucb, with the information gain over the heads as a bonus",
    dqn.PAPER_3 + ", algorithm 3",
    _UCB.replace(bonus=infogain.InfoGain(), beta=1.0),
  ),
)
