"""SARSA(λ) with linear features."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.papers.tabular import fourier, types


class Params(NamedTuple):
  """Scalars, float32 `[]`.

  Attributes:
    step_size: α, at least 0.
    discount: γ, in [0, 1].
    lambda_: λ, in [0, 1].
    initial_std: standard deviation of the initial weights, whose mean is 0; at least 0.
      Paper 1's variance of 0.001 for CartPole is its square.
  """

  step_size: jax.Array | float
  discount: jax.Array | float
  lambda_: jax.Array | float
  initial_std: jax.Array | float = 0.0


class State(NamedTuple):
  """Weights and traces, float32 `[A, F]` each, and the parameters."""

  weights: jax.Array
  traces: jax.Array
  params: Params


@dataclasses.dataclass(frozen=True)
class SarsaLambda(ranges.Checked):
  """SARSA(λ) with accumulating traces (Sutton and Barto, 2018, section 12.7).

  With q(x, a) = w_a · φ(x), at each step, whether a' explores or not,

    e_b ← γλ·e_b + 1[b = a]·φ(x) for every action b,
    w ← w + α·(r + γ·q(x', a') − q(x, a))·e.

  If the episode terminated, q(x', a') counts as 0; if it was truncated, a' is the
  action that the rule selects at x'. Traces are cleared at an episode's start.

  Dabney et al. (2021), appendix B, use it in MountainCar and CartPole with a Fourier
  basis. They do not specify the traces: accumulating traces are the standard form for
  features that are not binary. They do not say whether the step size is divided by ‖c‖,
  as in Konidaris et al. (2011): `scale_steps` does this, and α is then the step size of
  the constant feature.
  """

  features: fourier.Features
  num_actions: ranges.PositiveInt  # A.
  scale_steps: bool = False  # Multiply α by the features' own scales.

  num_members = 1
  on_policy = True

  def init(self, key: jax.Array, params: Params) -> State:
    shape = self.num_actions, self.features.num_features
    weights = params.initial_std * jax.random.normal(key, shape, jnp.float32)
    return State(weights, jnp.zeros(shape, jnp.float32), params)

  def begin_episode(self, state: State) -> State:
    return state._replace(traces=jnp.zeros_like(state.traces))

  def encode(self, observation: jax.Array) -> jax.Array:
    return self.features(observation)

  def q_values(self, state: State, encoded: jax.Array) -> jax.Array:
    return jnp.sum(state.weights * encoded[None], axis=1)[None]

  def update(self, state: State, transition: types.Transition) -> State:
    params = state.params
    features = transition.source
    value = self.q_values(state, features)[0, transition.action]
    following = self.q_values(state, transition.destination)[0]
    target = (
      transition.reward
      + params.discount * transition.discount * following[transition.next_action]
    )
    step = params.step_size * (target - value)
    taken = jnp.arange(self.num_actions, dtype=jnp.int32) == transition.action
    traces = params.discount * params.lambda_ * state.traces + jnp.where(
      taken[:, None], features[None, :], 0.0
    )
    steps = step * traces
    if self.scale_steps:
      steps = steps * jnp.asarray(self.features.step_scales())[None, :]
    learnt = State(state.weights + steps, traces, params)
    return jax.tree.map(lambda a, b: jnp.where(transition.learns, a, b), learnt, state)
