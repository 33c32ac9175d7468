"""Paper 3's figures 1, 3 and 5 on small games, and its table 4.

Table 4 counts the Atari games of table 2 in which each algorithm is the best, by
difficulty of exploration. The curves are of our own runs.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.environments import atari57
from explorax.experiments.recording import drawing
from explorax.papers import claims, layers, panels, types
from explorax.papers.ucb import small

# The columns of table 2.
_PUBLISHED = {
  "bootstrapped_dqn": "bootstrapped DQN",
  "double_dqn": "double DQN",
  "ensemble_voting": "ensemble voting",
  "ucb": "UCB exploration",
}
_CATEGORIES = {
  "human_optimal": "human optimal",
  "score_exploit": "score exploit",
  "dense_reward": "dense reward",
  "sparse_reward": "sparse reward",
}
# Game → its name as an environment.
GAMES = {
  "Breakout": "breakout",
  "Deep Sea, N = 8": "deep_sea/8",
  "GridWorld": "gridworld/10,time_limit=200",
}
_INFOGAIN = "ucb_infogain"


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of our own runs; those of the agents are in `small.agent_config`."""

  games: types.Distinct[Annotated[str, ranges.OneOf(GAMES)]] = tuple(GAMES)
  # T; 1 in the paper's figure 3.
  temperatures: types.Distinct[ranges.PositiveFloat] = (0.1, 1.0, 10.0)
  num_members: types.Size = 10  # K (section 5).
  num_steps: int = 20_000  # Table 1's schedules are stretched to them.
  num_points: types.Size = 20  # Of a curve.
  num_seeds: ranges.PositiveInt = 3  # Table 2 has 2.
  seeds_per_task: ranges.PositiveInt = 3  # Side by side.

  def __post_init__(self) -> None:
    super().__post_init__()
    small.check_points(self)
    if 1.0 not in self.temperatures:
      raise ValueError("temperatures are without 1, the paper's own; add it.")


def _tasks(config: Config) -> list[types.Task]:
  agents: list[tuple[str, float | None]] = [
    (agent, None) for agent in small.AGENTS if agent != _INFOGAIN
  ]
  agents += [(_INFOGAIN, temperature) for temperature in config.temperatures]
  return [
    task
    for game in config.games
    for agent, temperature in agents
    for task in types.split(
      f"{GAMES[game].partition('/')[0]}_{agent}{temperature or ''}",
      {
        "environment": GAMES[game],
        "agent": agent,
        "temperature": temperature,
        "num_members": config.num_members,
        "prior_scale": 0.0,
        "num_steps": config.num_steps,
        "num_points": config.num_points,
      },
      config.num_seeds,
      config.seeds_per_task,
      2.0 if game == "Breakout" else 1.0,
    )
  ]


def published() -> dict[str, dict[str, float]]:
  """Table 2: algorithm → game → the best mean of 100 episodes, of 49 games."""
  return atari57.published("chen")


_AGENT_LINES: layers.Lines = {
  label: {"agent": agent, "temperature": 1.0 if agent == _INFOGAIN else None}
  for agent, label in small.AGENTS.items()
}


def _temperature_lines(config: Config) -> layers.Lines:
  """UCB, and InfoGain at each temperature."""
  return {small.AGENTS["ucb"]: {"agent": "ucb"}} | {
    f"InfoGain, T = {t:g}": {"agent": _INFOGAIN, "temperature": t}
    for t in sorted(config.temperatures)
  }


def _normalised(lines: layers.Lines, table: types.Table) -> dict[str, np.ndarray]:
  """Label → curve `[S, P]`, between the worst and the best of all, over all games."""
  return atari57.normalised_curves(
    {
      label: {
        environment: table.joined("curve", environment=environment, **where)
        for environment in table.values("environment")
      }
      for label, where in lines.items()
    }
  )


def _panels(config: Config) -> list[list[panels.Panel | None]]:
  by_temperature = _temperature_lines(config)
  x = small.points(dataclasses.asdict(config)) / 1000
  steps = "environment steps (thousands)"
  published_panel = panels.Panel(
    _draw_published,
    title="table 4: Atari games, by table 2",
    legend={"fontsize": "x-small", "loc": "lower right"},
    xlabel="games with the best score",
    xlim=(0, 40),
  )
  return [
    [
      published_panel,
      *(
        panels.Panel(
          layers.computed(functools.partial(_normalised, lines), x),
          title=title,
          legend={"fontsize": "x-small", "loc": "best"},
          xlabel=steps,
          ylabel="normalised return",
        )
        for lines, title in (
          (_AGENT_LINES, "normalised, all games"),
          (by_temperature, "InfoGain, normalised, all games"),
        )
      ),
    ],
    [
      panels.Panel(
        layers.Curves("curve", by_temperature, x),
        where={"environment": GAMES[game]},
        legend=None,  # The lines are named above.
        title=f"InfoGain: {game}",
        xlabel=steps,
        ylabel="return of 100 episodes",
      )
      for game in config.games
    ],
  ]


def _draw_published(axes: types.Axes, table: types.Table) -> None:
  """Games of each category, by the algorithm with the best score."""
  del table
  counts = atari57.best_by_category(published())
  left = np.zeros(len(_CATEGORIES))
  for index, (name, label) in enumerate([*_PUBLISHED.items(), ("tied", "tied")]):
    width = np.array([counts[category][name] for category in _CATEGORIES])
    color = drawing.style(index).color
    axes.barh(list(_CATEGORIES.values()), width, left=left, color=color, label=label)
    left += width
  axes.invert_yaxis()


def _ucb_is_best(table: types.Table) -> tuple[str, bool]:
  """Of table 4, computed from table 2."""
  del table
  counts = atari57.best_by_category(published())
  words = [
    f"{label} {', '.join(f'{n} {name}' for name, n in counts[category].items() if n)}"
    for category, label in _CATEGORIES.items()
  ]
  easy = [counts[category] for category in _CATEGORIES if category != "sparse_reward"]
  return "; ".join(words), all(
    c["ucb"] > max(n for name, n in c.items() if name != "ucb") for c in easy
  )


def _above(claim: str, agent: str, others: Sequence[str]) -> types.Claim:
  """That an agent's mean normalised return is above those of others."""
  label = small.AGENTS[agent]

  def compare(other: str, table: types.Table) -> types.Finding:
    means = {k: x.mean(axis=1) for k, x in _normalised(_AGENT_LINES, table).items()}
    measured = f"{{a:.2f}} and {{b:.2f}} ({other}), a difference of {{gap}}"
    return claims.compare("", means[label], means[other], measured, spec=".2f")

  return claims.All(
    claim,
    [functools.partial(compare, small.AGENTS[other]) for other in others],
    prefix="mean normalised return ",
    opposite=agent == _INFOGAIN,
  )


Means = Mapping[str, np.ndarray]  # Label → each seed's mean over the curve, `[S]`.


def _means(config: Config, table: types.Table) -> dict[str, Means]:
  """The means of figure 5, by game."""
  return {
    game: {
      label: table.where(environment=GAMES[game], **where).score("curve")
      for label, where in _temperature_lines(config).items()
    }
    for game in config.games
  }


def _best(means: Means) -> str:
  """The label of InfoGain's best temperature."""
  return max(list(means)[1:], key=lambda label: float(np.mean(means[label])))


def _best_temperature_differs(
  config: Config, table: types.Table
) -> tuple[str, bool | None]:
  """Whether two games have different best temperatures.

  Better is better by more than 1 % of the largest difference between temperatures.
  """
  means = _means(config, table)
  labels = list(_temperature_lines(config))[1:]

  def better(game: str, a: str, b: str) -> bool | None:
    of_game = means[game]
    margin = 0.01 * np.ptp([np.mean(of_game[label]) for label in labels])
    return claims.compare("", of_game[a], of_game[b] + margin).held

  is_same = any(
    all(
      better(game, label, other) for game in means for other in labels if other != label
    )
    for label in labels
  )
  best = {game: _best(of_game) for game, of_game in means.items()}
  differ = any(
    best[g] != best[h] and better(g, best[g], best[h]) and better(h, best[h], best[g])
    for g, h in itertools.permutations(means, 2)
  )
  listed = "; ".join(
    f"{game}: "
    + ", ".join(f"{np.mean(x):.3g} ({label})" for label, x in of_game.items())
    for game, of_game in means.items()
  )
  return f"mean return {listed}", True if differ else False if is_same else None


def _improves_on_ucb(config: Config, game: str, table: types.Table) -> types.Finding:
  means = _means(config, table)[game]
  best, ucb = _best(means), small.AGENTS["ucb"]
  measured = f"{game}: {best}, a difference of {{gap}}"
  return claims.compare("", means[best], means[ucb], measured, spec=".3g")


def _claims(config: Config) -> list[types.Claim]:
  baselines = ("double_dqn", "bootstrapped_dqn_no_prior")
  return [
    lambda table: types.Finding(
      "Atari, tables 2 and 4: UCB is the best in more games than any other algorithm, "
      "but with sparse rewards",
      *_ucb_is_best(table),
      2,  # Seeds of table 2.
    ),
    _above(
      "small games: ensemble voting is above both baselines",
      "ensemble_voting",
      baselines,
    ),
    _above(
      "small games: UCB exploration is above ensemble voting",
      "ucb",
      ["ensemble_voting"],
    ),
    _above("InfoGain has no uniform benefit on top of UCB", _INFOGAIN, ["ucb"]),
    claims.Check(
      "the best temperature of InfoGain differs between games",
      functools.partial(_best_temperature_differs, config),
    ),
    claims.All(
      "with its best temperature, InfoGain improves on UCB in each game",
      [functools.partial(_improves_on_ucb, config, game) for game in config.games],
    ),
  ]


FIGURES = (
  types.Figure(
    name="ucb/fig5",
    title="Q-ensembles on small games, and the temperature of InfoGain",
    source="Chen et al. (2017), UCB Exploration via Q-Ensembles, figures 1, 3 and 5, "
    "and table 4",
    claim="UCB exploration is the best in most categories of games; in normalised "
    "curves ensemble voting outperforms double DQN and bootstrapped DQN, UCB "
    "outperforms voting, and InfoGain does not lead to a uniform improvement; its best "
    "temperature varies between games, and with it learning improves in those that "
    "require more exploration. The first panel is the paper's table; the curves are of "
    "small games.",
    config=Config(),
    quick=Config(
      games=("GridWorld",),
      temperatures=(1.0,),
      num_members=2,
      num_steps=2000,
      num_points=2,
      num_seeds=1,
    ),
    tasks=_tasks,
    compute=small.play,
    panels=_panels,
    claims=_claims,
    size=(3.9, 3.2),
  ),
)
