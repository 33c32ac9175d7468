"""The target of distributions of returns."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from explorax import losses, ranges
from explorax.agents.targets import one_step, types


@dataclasses.dataclass(frozen=True)
class CategoricalDoubleQ(types.Target):
  """Double Q-learning on distributions over atoms (Rainbow: Hessel et al., 2018)."""

  num_atoms: ranges.AtLeastTwo = 51  # N.
  # Atoms are spaced evenly between ± this.
  max_abs_value: ranges.PositiveFloat = 10.0

  @property
  def atoms(self) -> np.ndarray:
    limit = self.max_abs_value
    return np.linspace(-limit, limit, self.num_atoms, dtype=np.float32)

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return one_step.DoubleQ().td_errors(predictions, stream, tx_pair)

  def divergences(
    self, predictions: types.Predictions, stream: types.Stream
  ) -> jax.Array:
    assert predictions.logits_tm1 is not None and predictions.logits_t is not None
    atoms = jnp.asarray(self.atoms, jnp.float32)
    over_time = jax.vmap(losses.categorical_double_q_kl, (None, 0, 0, 0, 0, None, 0, 0))
    return over_time(
      atoms,
      predictions.logits_tm1,
      stream.a_tm1,
      stream.r_t,
      stream.discount_t,
      atoms,
      predictions.logits_t,
      predictions.q_t_selector,
    )
