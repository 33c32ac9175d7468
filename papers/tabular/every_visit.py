"""The online algorithm of Munos et al. (2016), theorem 3, in its every-visit form.

The k-th trajectory follows μ_k. Equation 8 updates each pair (x, a) of the trajectory,
where s is the time of its first visit:

    Q_{k+1}(x, a) = Q_k(x, a) + α_k(x, a) Σ_{t≥s} δ_t e_t(x, a)
    e_t(x, a) = Σ_{j=s}^t γ^{t−j} (Π_{i=j+1}^t c_i) 1{x_j, a_j = x, a}
              = γ c_t e_{t−1}(x, a) + 1{x_t, a_t = x, a}
    δ_t = r_t + γ E_{π_k} Q_k(x_{t+1}, ·) − Q_k(x_t, a_t)

The mean of the update is α_k d (RQ_k − Q_k), where d is the expected number of visits
to the pair in a trajectory. With the greedy policy as π_k and the trace of Retrace(λ),
the algorithm is Watkins's Q(λ).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax.papers.tabular import operators, random_mdps

Array = jax.Array


class Steps(NamedTuple):
  """Steps of consecutive trajectories, `[N]` each.

  Attributes:
    states, actions: x_t and a_t, int.
    next_states: x_{t+1}, int; not reached if the trajectory ends.
    ended: bool, whether a trajectory ended with this step, with a value of 0.
  """

  states: Array
  actions: Array
  next_states: Array
  ended: Array


class State(NamedTuple):
  """The state between steps.

  Attributes:
    key: a random key.
    state: x_t, int `[]`.
    q: Q_{k+1} after the steps of the trajectory so far, `[S, A]`.
    q_k: Q_k, `[S, A]`.
    traces: e_{t−1}, `[S, A]`.
    visited: bool `[S, A]`, whether the pair has occurred in this trajectory.
    counts: `[S, A]`, the number of earlier trajectories with the pair.
    k: int `[]`, the number of trajectories that have ended.
  """

  key: Array
  state: Array
  q: Array
  q_k: Array
  traces: Array
  visited: Array
  counts: Array
  k: Array


def greedy_mixture(q: Array, other: Array, epsilon: float | Array) -> Array:
  """The greedy action with probability 1 − ε, else `other`: equation 9, `[S, A]`.

  The probability of the greedy action is the same in all states, so that P^π and
  P^{π∧μ} commute for the greedy π (lemma 5).

  Args:
    q: `[S, A]`.
    other: the policy from which other actions are drawn, `[S, A]`.
    epsilon: ε in [0, 1].
  """
  greedy = random_mdps.epsilon_greedy(q)
  rest = other * (1 - greedy)
  return (1 - epsilon) * greedy + epsilon * rest / jnp.sum(rest, -1, keepdims=True)


class Learner(NamedTuple):
  """The algorithm in a decision process, with the parameters of equation 8.

  Attributes:
    mdp: the process; a trajectory may begin in any state.
    end_prob: the probability that a step ends the trajectory, with a value of 0.
    kind: one of `operators.KINDS`, which defines the trace c.
    discount: γ.
    lambda_: λ.
    target_epsilon: k → ε_k of the ε-greedy π_k.
    behaviour: Q_k `[S, A]` → μ_k `[S, A]`.
    step_offset, step_power: m ≥ 1 and ω of α_k(x, a) = (m + n)^−ω, where n is the
      number of earlier trajectories with the pair; ω in (1/2, 1] satisfies Robbins and
      Monro's conditions.
  """

  mdp: random_mdps.MDP
  end_prob: float | Array
  kind: str
  discount: float | Array
  lambda_: float | Array
  target_epsilon: Callable[[Array], float | Array]
  behaviour: Callable[[Array], Array]
  step_offset: float | Array
  step_power: float | Array

  def init(self, key: Array, q: Array) -> State:
    """The state at the start of the first trajectory, with Q_0 `[S, A]`."""
    key, start_key = jax.random.split(key)
    return State(
      key=key,
      state=jax.random.randint(start_key, (), 0, q.shape[0]),
      q=q,
      q_k=q,
      traces=jnp.zeros_like(q),
      visited=jnp.zeros(q.shape, bool),
      counts=jnp.zeros_like(q),
      k=jnp.zeros((), int),
    )

  def run(self, state: State, num_steps: int) -> tuple[State, Steps]:
    """Takes `num_steps` steps; when a trajectory ends, the next one starts."""
    return jax.lax.scan(lambda carry, _: self._step(carry), state, length=num_steps)

  def _step(self, s: State) -> tuple[State, Steps]:
    key, *keys = jax.random.split(s.key, 5)
    x, num_states = s.state, s.q.shape[0]
    pi = random_mdps.epsilon_greedy(s.q_k, self.target_epsilon(s.k))
    mu = self.behaviour(s.q_k)
    a = jax.random.choice(keys[0], mu.shape[1], p=mu[x])
    y = jax.random.choice(keys[1], num_states, p=self.mdp.transitions[x, a])
    ended = jax.random.uniform(keys[2], (), s.q.dtype) < self.end_prob
    start = jax.random.randint(keys[3], (), 0, num_states)

    c = operators.traces(self.kind, pi, mu, self.lambda_)[x, a]
    traces = (self.discount * c * s.traces).at[x, a].add(1.0)
    visited = s.visited.at[x, a].set(True)
    value = jnp.where(ended, 0.0, jnp.sum(pi[y] * s.q_k[y]))
    error = self.mdp.rewards[x, a] + self.discount * value - s.q_k[x, a]
    q = s.q + (self.step_offset + s.counts) ** -self.step_power * error * traces
    new = State(
      key=key,
      state=jnp.where(ended, start, y),
      q=q,
      q_k=jnp.where(ended, q, s.q_k),
      traces=jnp.where(ended, 0.0, traces),
      visited=jnp.where(ended, False, visited),
      counts=jnp.where(ended, s.counts + visited, s.counts),
      k=s.k + ended,
    )
    return new, Steps(x, a, y, ended)
