"""Losses: pure functions of unbatched arrays; batch them with `jax.vmap`.

The index notation is rlax's: `q_tm1` and `a_tm1` belong to a transition's source,
`r_t`, `discount_t` and `q_t` to its destination; `discount_t` includes γ and
termination.
"""

from explorax.losses.ensembles import (
  bootstrapped_td,
  infogain_bonus,
  q_uncertainty,
  tdu_bonus,
)
from explorax.losses.multi_step import expected_sarsa_lambda, n_step_q, peng_q_lambda
from explorax.losses.novelty import (
  disagreement,
  forward_dynamics,
  inverse_dynamics,
  novel_d,
  rnd_error,
)
from explorax.losses.off_policy import (
  harutyunyan_q_lambda,
  importance_sampling,
  non_markov_retrace,
  off_policy_q,
  retrace,
  tree_backup,
  watkins_q_lambda,
)
from explorax.losses.priorities import sequence_priority
from explorax.losses.q_learning import (
  categorical_double_q,
  categorical_double_q_kl,
  double_q,
  q_learning,
)
from explorax.losses.returns import non_markov_returns, off_policy_returns
from explorax.losses.successor import successor_features
from explorax.losses.transforms import TxPair, identity_pair, signed_hyperbolic_pair

__all__ = [
  "TxPair",
  "bootstrapped_td",
  "categorical_double_q",
  "categorical_double_q_kl",
  "disagreement",
  "double_q",
  "expected_sarsa_lambda",
  "forward_dynamics",
  "harutyunyan_q_lambda",
  "identity_pair",
  "importance_sampling",
  "infogain_bonus",
  "inverse_dynamics",
  "n_step_q",
  "non_markov_retrace",
  "non_markov_returns",
  "novel_d",
  "off_policy_q",
  "off_policy_returns",
  "peng_q_lambda",
  "q_learning",
  "q_uncertainty",
  "retrace",
  "rnd_error",
  "sequence_priority",
  "signed_hyperbolic_pair",
  "successor_features",
  "tdu_bonus",
  "tree_backup",
  "watkins_q_lambda",
]
