"""Paper 5's four targets on small games, each with its best step size, and by λ."""

import dataclasses
import functools
from typing import Annotated

from explorax import ranges
from explorax.experiments.recording import significance
from explorax.papers import claims, panels, types
from explorax.papers.retrace import scores

_EARLY = 1


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; the agents' other settings are those of `retrace/fig1`."""

  # Those of `retrace/fig1`, but for its swing-up of CartPole, which no agent learns.
  games: types.Distinct[Annotated[str, ranges.OneOf(scores.GAMES)]] = (
    "breakout",
    "cartpole",
    "mountain_car",
    "gridworld",
    "catch",
  )
  lambdas: types.Rising[ranges.Probability] = (0.5, 0.9, 1.0)
  learning_rates: types.Rising[ranges.PositiveFloat] = (3e-4, 1e-3, 3e-3)
  # An episode must end in each tenth of a run.
  num_steps: Annotated[int, ranges.Range(ge=20_000)] = 100_000
  first_seed: ranges.Seed = 100  # `retrace/fig1` has 0 to 4.
  # The first half chooses each agent's step size, the second half tests.
  num_seeds: Annotated[int, ranges.Range(ge=2)] = 10
  seeds_per_task: ranges.PositiveInt = 5  # They run in one program.


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


def _tasks(config: Config) -> list[types.Task]:
  tasks = []
  for game in config.games:
    steps = int(scores.GAMES[game].share * config.num_steps)
    for agent in _agents(config).values():
      for rate in config.learning_rates:
        tasks += types.split(
          f"{game}_{agent['agent']}{agent.get('lambda', '')}_{rate:g}",
          {**agent, "game": game, "num_steps": steps, "learning_rate": rate},
          config.num_seeds,
          config.seeds_per_task,
          15.0 + steps / scores.GAMES[game].speed,
          config.first_seed,
        )
  return tasks


def _tested(config: Config, window: int, table: types.Table) -> scores.Scores:
  """Label → inter-algorithm scores `[S/2, games]` of the second half of the seeds.

  Of each agent at the step size whose mean score at the end, over the games and the
  first half of the seeds, is the greatest.
  """
  middle = config.first_seed + config.num_seeds // 2
  choosing = types.Table(x for x in table if x.settings["seeds"][0] < middle)
  testing = types.Table(x for x in table if x.settings["seeds"][0] >= middle)
  agents, chosen = _agents(config), {}
  every = {
    f"{label} {rate}": {**agent, "learning_rate": rate}
    for label, agent in agents.items()
    for rate in config.learning_rates
  }
  z = scores.own_z(scores.LAST, choosing, every)
  for label in agents:
    of_label = [f"{label} {rate}" for rate in config.learning_rates]
    chosen[label] = every[max(of_label, key=lambda name: z[name].mean())]
  return scores.own_z(window, testing, chosen)


def _above(config: Config, a: str, b: str, window: int = scores.LAST) -> types.Claim:
  def claimed(table: types.Table) -> types.Finding | None:
    if not {a, b} <= {*_agents(config)}:
      return None
    z = _tested(config, window, table)
    return claims.compare(
      f"{a} {'starts' if window == _EARLY else 'ends'} above {b}",
      z[a],
      z[b],
      "mean inter-algorithm scores {a:.3g} and {b:.3g}, a difference of {gap}",
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
        above("Retrace(1)", "Q-learning"),
        above("Retrace(1)", "Tree-backup(1)"),
        above("Retrace(1)", "Q*(1)"),
        above("Retrace(1)", "Q-learning", _EARLY),
        above("Retrace(1)", "Tree-backup(1)", _EARLY),
      ]
    ),
    *claims.corrected(
      [
        above("Retrace(1)", "Retrace(0.9)"),
        above("Retrace(1)", "Retrace(0.5)"),
        above("Q*(0.5)", "Q*(1)"),
      ]
    ),
  ]


def _panel(config: Config, window: int, share: str) -> panels.Panel:
  return panels.Panel(
    lambda axes, table: scores.draw_z(axes, _tested(config, window, table)),
    title=f"after {share} of the steps",
    grid="x",
    legend=None,
    xlabel="mean inter-algorithm score",
    xlim=(0, 1),
  )


FIGURES = (
  types.Figure(
    name="retrace/tuned",
    title="Retrace and its relatives, each with its best step size",
    source="Our own, of Munos et al. (2016), Safe and efficient off-policy "
    "reinforcement learning, figure 1",
    claim="at λ = 1, Retrace and tree-backup score far above Q-learning early on and "
    "stay ahead; Retrace has a narrower advantage over tree-backup, and Q*(1) "
    "diverges; Q* is best at λ = 0.5.",
    config=Config(),
    quick=Config(
      games=("gridworld",),
      lambdas=(1.0,),
      learning_rates=(1e-3,),
      num_steps=20_000,
      num_seeds=2,
      seeds_per_task=1,
    ),
    tasks=_tasks,
    compute=scores.run,
    panels=lambda config: [
      [_panel(config, _EARLY, "20 %"), _panel(config, scores.LAST, "100 %")]
    ],
    claims=_claims,
    caption="Small marks are seeds, large ones their means with 95 % t-intervals, over "
    "five small games. Five other seeds chose the step sizes.",
    height=3.2,
    large=True,
  ),
)
