"""Paper 5's four targets on small games, each with its best step size, and by λ."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.experiments.reports import markdown
from explorax.papers import claims, panels, significance, types
from explorax.papers.retrace import scores

_LEARNING_RATE = "learning_rate"


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; the agents' other settings are those of `retrace/fig1`."""

  games: types.Distinct[Annotated[str, ranges.OneOf(scores.GAMES)]] = tuple(
    scores.GAMES
  )
  lambdas: types.Rising[ranges.Probability] = (0.5, 0.9, 1.0)
  learning_rates: types.Rising[ranges.PositiveFloat] = (3e-4, 1e-3, 3e-3)
  # An episode must end in each tenth of a run.
  num_steps: Annotated[int, ranges.Range(ge=20_000)] = 100_000
  # Those that choose each agent's step size.
  first_tuning_seed: ranges.Seed = 200
  num_tuning_seeds: ranges.PositiveInt = 5
  # Those that test; `retrace/fig1` has 0 to 4.
  first_seed: ranges.Seed = 300
  num_seeds: ranges.PositiveInt = 9


def _agents(config: Config) -> dict[str, types.Settings]:
  """Label → settings without the step size; Q-learning has no λ."""
  agents: dict[str, types.Settings] = {}
  for agent, (_, label) in scores.AGENTS.items():
    name, has_lambda, _ = label.partition("(1)")
    for value in config.lambdas if has_lambda else ():
      agents[f"{name}({value:g})"] = {"agent": agent, "lambda": value}
    if not has_lambda:
      agents[label] = {"agent": agent}
  return agents


def _first_tasks(config: Config) -> list[types.Task]:
  return [
    task
    for agent in _agents(config).values()
    for rate in config.learning_rates
    for task in _tasks(config, {**agent, _LEARNING_RATE: rate}, tuning=True)
  ]


def _then_tasks(config: Config, table: types.Table) -> list[types.Task]:
  return [
    task
    for agent in _chosen(config, table).values()
    for task in _tasks(config, agent, tuning=False)
  ]


def _tasks(config: Config, agent: types.Settings, *, tuning: bool) -> list[types.Task]:
  """Of one agent in all games.

  The seeds of a task share a draw of ε's schedules: the tested ones run alone, so that
  their differences are independent.
  """
  name = "_".join(map(str, agent.values()))
  tasks = []
  for game in config.games:
    steps = int(scores.GAMES[game].share * config.num_steps)
    tasks += types.split(
      f"{'tuning_' * tuning}{game}_{name}",
      {**agent, "game": game, "num_steps": steps, "tuning": tuning},
      config.num_tuning_seeds if tuning else config.num_seeds,
      config.num_tuning_seeds if tuning else 1,
      15.0 + steps / scores.GAMES[game].speed,
      config.first_tuning_seed if tuning else config.first_seed,
    )
  return tasks


def _normalised(
  config: Config, table: types.Table, agent: types.Settings, *, tuning: bool
) -> np.ndarray:
  """Scores of one agent, `[S, games, 10]`, of each tenth of the run.

  In each game, 0 and 1 are the worst and the best mean at the end of the tuning's runs,
  over all agents and step sizes, so that the tested runs do not affect the scale.
  """
  tuned, found = table.where(tuning=True), []
  for game in config.games:
    ends = [
      group.joined("scores")[:, scores.LAST].mean()
      for group in tuned.where(game=game).by_problem()
    ]
    low, high = min(ends), max(ends)
    x = table.joined("scores", game=game, tuning=tuning, **agent)
    found.append((x - low) / (high - low if high > low else 1.0))
  return np.stack(found, axis=1)


def _tuning_scores(
  config: Config, table: types.Table, agent: types.Settings
) -> dict[float, float]:
  """Step size → the mean score over seeds, games and the whole run, in the tuning."""
  return {
    rate: float(
      _normalised(config, table, {**agent, _LEARNING_RATE: rate}, tuning=True).mean()
    )
    for rate in config.learning_rates
  }


def _chosen(config: Config, table: types.Table) -> dict[str, types.Settings]:
  """Label → settings with the step size of the greatest score in the tuning."""
  chosen: dict[str, types.Settings] = {}
  for label, agent in _agents(config).items():
    found = _tuning_scores(config, table, agent)
    chosen[label] = {**agent, _LEARNING_RATE: max(found, key=found.__getitem__)}
  return chosen


def _tested(config: Config, window: int, table: types.Table) -> scores.Scores:
  """Label → scores `[S, games]` of the tested runs in a tenth of the run."""
  return {
    label: _normalised(config, table, agent, tuning=False)[..., window]
    for label, agent in _chosen(config, table).items()
  }


def _above(config: Config, a: str, b: str, window: int = scores.LAST) -> types.Claim:
  def claimed(table: types.Table) -> types.Finding | None:
    if not {a, b} <= {*_agents(config)}:
      return None
    z = _tested(config, window, table)
    return claims.compare(
      f"{a} is above {b} {'early' if window == scores.EARLY else 'at the end'}",
      z[a],
      z[b],
      "mean scores {a:.3g} and {b:.3g}, a difference of {gap}",
      spec=".3f",
      test=significance.paired,
      games=config.games,
    )

  return claimed


def _claims(config: Config) -> list[types.Claim]:
  """Two families of tests, each corrected by Holm's method: at λ = 1, and of λ."""
  above = functools.partial(_above, config)
  return [
    *claims.corrected(
      [
        above("Retrace(1)", "Q-learning", scores.EARLY),
        above("Retrace(1)", "Q-learning"),
        above("Tree-backup(1)", "Q-learning", scores.EARLY),
        above("Tree-backup(1)", "Q-learning"),
        above("Retrace(1)", "Tree-backup(1)", scores.EARLY),
        above("Retrace(1)", "Tree-backup(1)"),
        above("Retrace(1)", "Q*(1)"),
      ]
    ),
    *claims.corrected(
      [
        above(f"{name}({best:g})", f"{name}({other:g})")
        for name, best, others in (
          ("Retrace", 1.0, (0.9, 0.5)),
          ("Tree-backup", 1.0, (0.9, 0.5)),
          ("Q*", 0.5, (0.9, 1.0)),
        )
        for other in others
      ]
    ),
  ]


def _text(config: Config, table: types.Table) -> str:
  """How each agent's step size was chosen."""
  rows: Sequence[dict[str, str]] = [
    {
      "agent": label,
      **{
        f"{rate:g}": f"{score:.2f}"
        for rate, score in _tuning_scores(config, table, agent).items()
      },
    }
    for label, agent in _agents(config).items()
  ]
  return (
    "Mean scores in the tuning, over the whole run, by step size; the greatest one is "
    f"tested:\n\n{markdown.table(rows)}"
  )


def _panel(config: Config, window: int, share: str) -> panels.Panel:
  return panels.Panel(
    lambda axes, table: scores.draw_z(axes, _tested(config, window, table)),
    title=f"after {share} of the steps",
    grid="x",
    legend=None,
    xlabel="mean score",
  )


FIGURES = (
  types.Figure(
    name="retrace/tuned",
    title="Retrace and its relatives, each with its best step size",
    source="Our own, of Munos et al. (2016), Safe and efficient off-policy "
    "reinforcement learning, figure 1",
    claim="at λ = 1, Retrace and tree-backup score far above Q-learning early on and "
    "stay ahead; Retrace has a narrower advantage over tree-backup, and Q*(1) "
    "diverges; Q* is best at λ = 0.5. Here replay and the target network's period are "
    "not tuned, and Q-learning has the greedy target of the paper's control.",
    config=Config(),
    quick=Config(
      games=("gridworld",),
      lambdas=(1.0,),
      learning_rates=(1e-3,),
      num_steps=20_000,
      num_tuning_seeds=1,
      num_seeds=1,
    ),
    tasks=_first_tasks,
    then=_then_tasks,
    compute=scores.run,
    panels=lambda config: [
      [_panel(config, scores.EARLY, "20 %"), _panel(config, scores.LAST, "100 %")]
    ],
    claims=_claims,
    text=_text,
    caption="Small marks are seeds, large ones their means with 95 % t-intervals, over "
    "small games. In each game, 0 and 1 are the worst and the best mean at the end of "
    "the runs of other seeds that chose the step sizes. Each tested seed has its own "
    "draw of ε's schedules; those that chose share one.",
    height=3.2,
    large=True,
  ),
)
