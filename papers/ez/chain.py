"""Paper 1's figure 2: the law of durations with the highest return in a chain."""

import dataclasses

import numpy as np

from explorax import ranges
from explorax.papers import claims, layers, panels, types
from explorax.papers.ez import runs

# The name of each law, and of its parameter in the paper.
_LAWS = {"zeta": "μ", "exponential": "λ", "uniform": "N"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure. The paper's text gives none of them: all are our own.

  With γ = 0.99, the best stop is the ninth reward, in state 53, with a value of 5.28.
  We chose α = 0.5 over 0.1 after runs of both with 30 seeds: at 0.1, all laws learn
  less within these episodes, and the zeta law is equally good at μ = 1.5 and 2 (1.157
  and 1.154).
  """

  # μ.
  zeta: types.Distinct[ranges.NonNegativeFloat] = (
    *(1.0, 1.25, 1.5, 1.75),
    *(2.0, 2.5, 3.0, 4.0),
  )
  # λ.
  exponential: types.Distinct[ranges.BelowOne] = (
    *(0.0, 0.25, 0.5, 0.7),
    *(0.8, 0.9, 0.95, 0.99),
  )
  # N.
  uniform: types.Distinct[ranges.PositiveInt] = (1, 2, 4, 8, 16, 64, 256, 1024)
  cap: ranges.PositiveInt = (
    10_000  # Longest duration of the zeta and exponential laws (appendix).
  )
  size: types.Size = 100  # States.
  episodes: ranges.PositiveInt = 1000
  step_size: ranges.Probability = 0.5  # α.
  discount: ranges.Probability = 0.99  # γ.
  epsilon: ranges.Probability = 0.1
  num_seeds: ranges.PositiveInt = 30  # Appendix B.


def _tasks(config: Config) -> list[types.Task]:
  fields = dataclasses.asdict(config)
  swept = {name: fields.pop(name) for name in _LAWS}
  seeds = list(range(fields.pop("num_seeds")))
  return [
    types.Task(f"{law}_{x}", {"law": law, "parameter": x, **fields, "seeds": seeds})
    for law in _LAWS
    for x in swept[law]
  ]


def _compute(settings: types.Settings) -> types.Results:
  problem = runs.chain(settings["size"], settings["step_size"], settings["discount"])
  rule = runs.make_law(settings, settings["epsilon"])
  return runs.learn(problem, rule, settings["seeds"], settings["episodes"])


def _panels(config: Config) -> list[list[panels.Panel]]:
  return [
    [
      panels.Panel(
        layers.Curves(
          "discounted_returns",
          {f"_{law}": {"law": law}},
          "parameter",
          markers=True,
          among=[*_LAWS],
        ),
        share_y=True,
        title=f"{law} durations",
        xlabel=symbol,
        xscale=("log", {"base": 2}) if law == "uniform" else "linear",
        ylabel="discounted return,\nmean over all episodes",
      )
      for law, symbol in _LAWS.items()
    ]
  ]


def _best(
  law: str, table: types.Table
) -> tuple[float, np.ndarray, dict[float, np.ndarray]]:
  """The best parameter of a law, chosen with half of the seeds.

  Returns:
    The parameter, the returns of the other seeds with it, and theirs with each one.
  """
  parameters, y = layers.over("parameter", table.where(law=law), "discounted_returns")
  best = int(np.argmax(y[::2].mean(axis=0)))
  returns = dict(zip(parameters.tolist(), y[1::2].T, strict=True))
  return parameters[best], y[1::2, best], returns


def _is_inverted_u(table: types.Table) -> types.Finding:
  at, best, returns = _best("zeta", table)
  least, greatest = min(returns), max(returns)
  more = f"best at μ = {at:g} with {{a:.3g}}; more than at {least:g} by {{gap}}"
  return claims.all_of(
    "an inverted U over μ: the best one earns more than the least and the greatest",
    [
      claims.compare("", best, returns[least], more),
      claims.compare("", best, returns[greatest], f"than at {greatest:g} by {{gap}}"),
    ],
    ", ",
  )


def _beats_epsilon_greedy(table: types.Table) -> types.Finding | None:
  """The uniform law of durations of at most 1 is ε-greedy."""
  (_, zeta, _), (_, _, uniform) = _best("zeta", table), _best("uniform", table)
  if 1 not in uniform:
    return None
  return claims.compare(
    "durations beyond 1 are needed: the best zeta law beats ε-greedy",
    zeta,
    uniform[1],
    "{gap}",
  )


def _long_uniform_is_poor(table: types.Table) -> types.Finding:
  (_, zeta, _), (_, _, uniform) = _best("zeta", table), _best("uniform", table)
  return claims.compare(
    f"a uniform law on a large support (N = {max(uniform):g}) is poor",
    uniform[max(uniform)],
    zeta,
    "{a:.3g}; less the best zeta law: {gap}",
    less=True,
  )


def _zeta_is_best(table: types.Table) -> types.Finding:
  _, zeta, _ = _best("zeta", table)
  parts = []
  for law in ("exponential", "uniform"):
    at, best, _ = _best(law, table)
    measured = f"{law} at {_LAWS[law]} = {at:g}: {{gap}}"
    parts.append(claims.compare("", zeta, best, measured))
  return claims.all_of(
    "the best zeta law beats the best of the others",
    parts,
  )._replace(kind="ours")


FIGURES = (
  types.Figure(
    name="ez/fig2",
    title="Laws of durations in the chain",
    source=f"{runs.PAPER}, figure 2, Q-learning",
    claim="without prior knowledge it is important to support long durations, as the "
    "zeta law does, but not only long ones: the return is an inverted U of its "
    "exponent, and a uniform law on a large support is poor.",
    config=Config(),
    quick=Config(
      zeta=(1.0, 2.0, 4.0),
      exponential=(0.5,),
      uniform=(1, 64),
      size=20,
      episodes=100,
      num_seeds=5,
    ),
    tasks=_tasks,
    compute=_compute,
    panels=_panels,
    claims=lambda config: [
      _is_inverted_u,
      _beats_epsilon_greedy,
      _long_uniform_is_poor,
      _zeta_is_best,
    ],
    height=2.7,
  ),
)
