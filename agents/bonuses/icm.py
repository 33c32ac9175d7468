"""The bonus of the intrinsic curiosity module."""

import dataclasses

import dm_env
import jax

from explorax.agents.bonuses import dynamics, types


@dataclasses.dataclass(frozen=True)
class ICM(types.Bonus):
  """½ ‖g(φ(x), a) − φ(x')‖², the error of a forward model of learnt embeddings.

  φ is trained by inverse dynamics and by the forward error together, in the learner. In
  a noisy world the error does not vanish: its least value is half the trace of the
  covariance of φ(x').

  Source: Pathak et al. (2017), and its code (noreward-rl, `src/model.py` and
  `src/constants.py`), whose η = 0.01 is the agent's β here.
  """

  # Weights of 1 − β and β with β = 0.2, 288 features, ten times the agent's learning
  # rate of 1e-4 (all of the code).
  model: dynamics.Dynamics = dataclasses.field(
    default_factory=lambda: dynamics.Dynamics(
      embedding_size=288, inverse_weight=0.8, forward_weight=0.2, learning_rate=1e-3
    )
  )

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    models = self.model.build(observation_spec, num_actions)

    def compute(
      state: dynamics.State, inputs: types.Inputs
    ) -> tuple[jax.Array, dynamics.State]:
      errors, state = models.update(state, *inputs.transitions)
      return errors.forward, state

    return types.IntrinsicReward(
      "transition", learning=types.Learning(models.init, compute)
    )
