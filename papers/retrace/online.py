"""Paper 5's theorem 3: the online algorithm on random decision processes."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax import ranges
from explorax.experiments.recording import statistics
from explorax.papers import claims, layers, panels, types
from explorax.papers.retrace import measurements
from explorax.papers.tabular import every_visit, operators, random_mdps

_HUGE = 1e9  # Larger errors are clipped.
_Inside = Annotated[float, ranges.Range(gt=0, lt=1)]


class Run(NamedTuple):
  """An algorithm; λ is 1 for all except one-step Q-learning.

  Attributes:
    label: the label of its line.
    kind: one of `operators.KINDS`.
    lambda_: λ.
    target_epsilon: k → ε_k of π_k.
  """

  label: str
  kind: str
  lambda_: float
  target_epsilon: Callable[[jax.Array], jax.Array]


def _falling(k: jax.Array) -> jax.Array:
  return (1.0 + k) ** -0.5


def _greedy(k: jax.Array) -> jax.Array:
  return 0.0 * k


RUNS = {
  "retrace": Run("Retrace(1), $ε_k = (1 + k)^{-1/2}$", "retrace", 1.0, _falling),
  "watkins": Run("Watkins's Q(1)", "watkins_q_lambda", 1.0, _greedy),
  "one_step": Run("Q-learning, one-step", "watkins_q_lambda", 0.0, _greedy),
  "q_star": Run("Q*(1), Harutyunyan's", "harutyunyan_q_lambda", 1.0, _greedy),
}
# μ_k: the policy of equation 9, which theorem 3 requires, or a fixed policy.
BEHAVIOURS = {
  "mixture": "$μ_k$ of equation 9",
  "fixed": "μ fixed, at random: not in the theorem",
}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure: ours, since the paper has none on this scale."""

  num_states: types.Size = 4
  num_actions: types.Size = 3
  concentration: ranges.PositiveFloat = (
    0.3  # Of transitions: about two likely successors each.
  )
  discount: _Inside = 0.9
  # Probability that a step ends the trajectory: 20 steps on average.
  end_prob: _Inside = 0.05
  behaviour_epsilon: _Inside = 0.5  # ε of equation 9, constant.
  # α_k(x, a) = (20 + n)^−0.7, see `every_visit.Learner`: initially 0.12, so that pairs
  # with many visits in a trajectory do not overshoot.
  step_offset: Annotated[float, ranges.Range(ge=1)] = 20.0
  step_power: Annotated[float, ranges.Range(ge=0.5, le=1)] = 0.7
  num_steps: int = 200_000
  num_points: Annotated[int, ranges.Range(ge=10)] = 100  # Of a curve.
  num_seeds: ranges.PositiveInt = 100  # Decision processes, each with its policies.


def _tasks(config: Config) -> list[types.Task]:
  return [
    types.Task(
      f"{behaviour}_{run}",
      {"run": run, "behaviour": behaviour, **dataclasses.asdict(config)},
    )
    for behaviour in BEHAVIOURS
    for run in RUNS
  ]


@contextlib.contextmanager
def _float64() -> Iterator[None]:
  before = jax.config.read("jax_enable_x64")
  jax.config.update("jax_enable_x64", True)
  try:
    yield
  finally:
    jax.config.update("jax_enable_x64", before)


def _compute(settings: types.Settings) -> types.Results:
  """In float64: `errors` ‖Q_k − Q*‖∞ `[N, 1 + P]`, from Q_0 on, and `commutator` `[N]`.

  Q_0 is uniform between the smallest and the largest possible value. The commutator is
  max |P^π P^{π∧μ} − P^{π∧μ} P^π| of the last π_k and μ_k.
  """
  with _float64():
    drawn = measurements.draw(settings)
    keys = jax.vmap(jax.random.key)(jnp.arange(settings["num_seeds"]))
    start, advance, commutator = (
      jax.jit(jax.vmap(functools.partial(function, settings)))
      for function in (_start, _advance, _commutator)
    )
    state, error = start(drawn, keys)
    errors = [error]
    for _ in range(settings["num_points"]):
      state, error = advance(drawn, state)
      errors.append(error)
    found = np.nan_to_num(np.stack(errors, axis=1), nan=_HUGE, posinf=_HUGE)
    return {
      "errors": np.minimum(found, _HUGE),
      "commutator": np.asarray(commutator(drawn, state)),
    }


_Drawn = tuple[random_mdps.MDP, jax.Array, jax.Array]  # `measurements.draw`'s.


def _learner(settings: types.Settings, drawn: _Drawn) -> every_visit.Learner:
  mdp, _, other = drawn
  other = (other + 1 / settings["num_actions"]) / 2  # No action is too rare.
  run = RUNS[settings["run"]]
  behaviour = functools.partial(
    every_visit.greedy_mixture, other=other, epsilon=settings["behaviour_epsilon"]
  )
  fixed = settings["behaviour"] == "fixed"
  return every_visit.Learner(
    mdp=mdp,
    end_prob=settings["end_prob"],
    kind=run.kind,
    discount=settings["discount"],
    lambda_=run.lambda_,
    target_epsilon=run.target_epsilon,
    behaviour=(lambda q: other) if fixed else behaviour,
    step_offset=settings["step_offset"],
    step_power=settings["step_power"],
  )


def _error(settings: types.Settings, drawn: _Drawn, q: jax.Array) -> jax.Array:
  discount = (1 - settings["end_prob"]) * settings["discount"]
  return jnp.max(jnp.abs(q - operators.q_star(drawn[0], discount)))


def _start(
  settings: types.Settings, drawn: _Drawn, key: jax.Array
) -> tuple[every_visit.State, jax.Array]:
  q_key, key = jax.random.split(key)
  high = 1.0 / (1 - (1 - settings["end_prob"]) * settings["discount"])
  q = jax.random.uniform(q_key, drawn[0].rewards.shape, minval=-high, maxval=high)
  return _learner(settings, drawn).init(key, q), _error(settings, drawn, q)


def _advance(
  settings: types.Settings, drawn: _Drawn, state: every_visit.State
) -> tuple[every_visit.State, jax.Array]:
  steps = settings["num_steps"] // settings["num_points"]
  state, _ = _learner(settings, drawn).run(state, steps)
  return state, _error(settings, drawn, state.q_k)


def _commutator(
  settings: types.Settings, drawn: _Drawn, state: every_visit.State
) -> jax.Array:
  learner = _learner(settings, drawn)
  pi = random_mdps.epsilon_greedy(state.q_k, learner.target_epsilon(state.k))
  both = jnp.minimum(pi, learner.behaviour(state.q_k))
  p, q = (operators.pair_matrix(learner.mdp, weights) for weights in (pi, both))
  return jnp.max(jnp.abs(p @ q - q @ p))


def _panels(config: Config) -> list[list[panels.Panel]]:
  steps = config.num_steps // config.num_points * np.arange(1, config.num_points + 1)
  errors = layers.Curves(
    lambda table: table.joined("errors")[:, 1:],
    {run.label: {"run": name} for name, run in RUNS.items()},
    steps,
    scipy.stats.gmean,
  )
  return [
    [
      panels.Panel(
        errors,
        where={"behaviour": behaviour},
        share_y=True,
        title=title,
        xlabel="steps",
        ylabel=r"$\|Q_k - Q^*\|_\infty$, geometric mean",
        xscale="log",
        yscale="log",
      )
      for behaviour, title in BEHAVIOURS.items()
    ]
  ]


def _converges(table: types.Table) -> tuple[str, bool | None]:
  """Whether all final errors are below a tenth of Q_0's, and still fall on average."""
  errors = table.joined("errors")
  worst = np.max(errors[:, -1] / errors[:, 0])
  tenth = (errors.shape[1] - 1) // 10
  falls = statistics.mean(np.log(errors[:, -1] / errors[:, tenth])).map(np.exp)
  return (
    f"at the end, at most {worst:.3g} of Q_0's error is left in any process; the last "
    f"nine tenths of the steps leave {falls.to_text()} of it"
  ), falls.is_below(1.0) if worst < 0.1 else False


def _commutes(table: types.Table) -> tuple[str, bool]:
  greedy, falling, fixed = (
    np.max(table.joined("commutator", behaviour=behaviour, run=run))
    for behaviour, run in (
      ("mixture", "watkins"),
      ("mixture", "retrace"),
      ("fixed", "retrace"),
    )
  )
  return (
    f"at the end, the products differ by at most {greedy:.2g} for the greedy π and "
    f"{falling:.2g} for ε_k; with a fixed μ by up to {fixed:.2g}"
  ), bool(greedy < 1e-12 and falling < 0.1 * fixed)


_CLAIMS = (
  claims.Check(
    "theorem 3: Retrace(1) converges with equation 9's μ, which keeps exploring",
    _converges,
    {"behaviour": "mixture", "run": "retrace"},
    test="all below a tenth, and still falling",
  ),
  claims.Check(
    "its corollary: so does Watkins's with equation 9's μ, which keeps exploring",
    _converges,
    {"behaviour": "mixture", "run": "watkins"},
    test="all below a tenth, and still falling",
  ),
  claims.Check(
    "lemma 5: P^π and P^{π∧μ} commute in the limit with equation 9's μ", _commutes
  ),
  claims.Check(
    "beyond theorem 3: Retrace(1) converges with a fixed μ too",
    _converges,
    {"behaviour": "fixed", "run": "retrace"},
    kind="ours",
    test="all below a tenth, and still falling",
  ),
  claims.Check(
    "beyond theorem 3: Watkins's converges with a fixed μ too",
    _converges,
    {"behaviour": "fixed", "run": "watkins"},
    kind="ours",
    test="all below a tenth, and still falling",
  ),
)


FIGURES = (
  types.Figure(
    name="retrace/online",
    title="The online every-visit algorithm: Retrace and Watkins's Q(λ)",
    source="Our own, of Munos et al. (2016), Safe and efficient off-policy "
    "reinforcement learning, theorem 3 and equation 8",
    claim="with equation 8, Retrace(λ) converges to Q* although the behaviour never "
    "becomes greedy, if P^π and P^{π∧μ} commute in the limit; so does Watkins's Q(λ). "
    "The paper leaves open whether it does so without that condition.",
    config=Config(),
    quick=Config(num_steps=2000, num_points=20, num_seeds=3),
    tasks=_tasks,
    compute=_compute,
    panels=_panels,
    claims=lambda config: _CLAIMS,
    caption="Geometric means over 100 decision processes; bands: 95 % bootstrap "
    "intervals.",
    kind="operator",
    height=3.4,
  ),
)
