"""The combinations that agents' configs refuse, and the replay that they declare.

The ranges of single fields are in tests/test_ranges.py.
"""

import dataclasses
import functools
from typing import Any

import dm_env
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import tdu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.successor import agent as successor_agent
from explorax.agents.successor import config as successor_config
from explorax.agents.targets import categorical, greedy, off_policy
from explorax.environments import specs
from explorax.experiments.presets import r2d2

Q, SUCCESSOR = q_config.QConfig, successor_config.SuccessorConfig
MAKE_AGENT = {Q: q_agent.make_agent, SUCCESSOR: successor_agent.make_agent}
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(3)
)
BANDIT = exploration.EpsilonGreedy(0.1, of=exploration.Ucb1())
C51 = categorical.CategoricalDoubleQ(num_atoms=5)
Linear = exploration.Linear
R2D2 = functools.partial(dataclasses.replace, r2d2.ATARI)

# A combination that a QConfig refuses, and the field that the sentence names.
REFUSED: list[tuple[dict[str, Any], str]] = [
  ({"num_explorers": 2}, "num_explorers is 2"),
  ({"beta": 0.1}, "beta is 0.1"),
  ({"bonus": tdu.TDUncertainty()}, "num_members is 1"),
  (
    {"target": off_policy.Retrace(epsilon=None), "exploration": exploration.Greedy()},
    "target.epsilon is None",
  ),
  ({"importance_exponent": Linear(0.0, 1.0, 9)}, "importance_exponent is Linear"),
  ({"target": greedy.NStep(n=2)}, "n_step"),
  ({"target": C51, "prior_scale": 1.0}, "prior_scale is 1.0"),
  ({"index_dim": 2, "exploration": BANDIT}, "Ucb1"),
  ({"index_dim": 2, "head_size": 8}, "head_size is 8"),
  ({"index_dim": 2, "target": C51}, "index_dim is 2, but Categorical"),
  (
    {"evaluation_epsilon": 0.1, "evaluation": exploration.Greedy()},
    "evaluation_epsilon is 0.1",
  ),
  ({"evaluation_policy": 1}, "evaluation_policy is 1"),
  ({"evaluation_policy": -2}, "evaluation_policy is -2"),
  ({"num_policies": 2, "num_members": 2}, "num_policies is 2"),
  ({"min_discount": 0.999}, "min_discount is 0.999"),
  ({"burn_in": 4}, "burn_in is 4"),
]


@pytest.mark.core
@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_an_impossible_combination_is_refused(changes, field):
  with pytest.raises(ValueError, match=field):
    Q(**changes)


@pytest.mark.parametrize(
  ("config", "words"),
  [
    (Q(exploration=exploration.Ucb(ddof=1)), "Ucb"),
    (R2D2(replay_capacity=200, min_replay_size=1, batch_size=64), "200"),
    (Q(sequence_period=2), "period is 2"),
    (Q(replay_capacity=60), "replay_capacity is 60"),
    (SUCCESSOR(min_replay_size=99_999), "min_replay_size is 99999"),
  ],
)
def test_a_config_without_an_agent_is_refused(config, words):
  with pytest.raises(ValueError, match=words):
    MAKE_AGENT[type(config)](config, SPEC)
