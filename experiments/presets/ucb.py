"""Paper 3: UCB exploration via Q-ensembles (Chen et al., 2017)."""

import dataclasses
import functools
from typing import Any

from explorax import exploration
from explorax.agents.bonuses import infogain
from explorax.agents.targets import one_step
from explorax.experiments.presets import dqn

# Ten heads on one torso, with double Q-learning. The paper has settings for Atari only;
# small problems use bsuite's.
_SMALL = dataclasses.replace(
  dqn.SMALL, num_members=10, shared_torso=True, target=one_step.DoubleQ()
)

_voting = functools.partial(dataclasses.replace, exploration=exploration.MajorityVote())
_UCB: dict[str, Any] = {"exploration": exploration.Ucb(scale=0.1)}
_INFOGAIN: dict[str, Any] = {**_UCB, "bonus": infogain.InfoGain(), "beta": 1.0}

PRESETS = (
  dqn.preset(
    name="ensemble_voting",
    summary="the majority vote of ten heads on one torso",
    paper=dqn.PAPER_3 + ", algorithm 1",
    config=_voting(_SMALL),
    on={"atari:": _voting(dqn.ENSEMBLE_ATARI)},
  ),
  dqn.preset(
    name="ucb",
    summary="the upper confidence bound over ten heads on one torso",
    paper=dqn.PAPER_3 + ", algorithm 2",
    config=dataclasses.replace(_SMALL, **_UCB),
    on={"atari:": dataclasses.replace(dqn.ENSEMBLE_ATARI, **_UCB)},
  ),
  dqn.preset(
    name="ucb_infogain",
    summary="ucb, with the information gain over the heads as a bonus",
    paper=dqn.PAPER_3 + ", algorithm 3",
    config=dataclasses.replace(_SMALL, **_INFOGAIN),
    on={"atari:": dataclasses.replace(dqn.ENSEMBLE_ATARI, **_INFOGAIN)},
  ),
)
