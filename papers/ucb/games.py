"""Paper 3's figures 1, 3 and 5 on small games, and its table 4.

Table 4 counts the Atari games of table 2 in which each algorithm is the best, by
difficulty of exploration. The curves are of our own runs.
"""

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from explorax.agents import ranges
from explorax.environments import atari57
from explorax.experiments.recording import drawing
from explorax.papers import claims, panels, types
from explorax.papers import published as published_lib
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
class Config:
  """Settings of our own runs; those of the agents are in `small.agent_config`."""

  games: tuple[str, ...] = tuple(GAMES)
  temperatures: tuple[float, ...] = (0.1, 1.0, 10.0)  # T; 1 in the paper's figure 3.
  num_members: int = 10  # K (section 5).
  num_steps: int = 20_000  # Table 1's schedules are stretched to them.
  num_points: int = 20  # Of a curve.
  num_seeds: int = 3  # Table 2 has 2.
  seeds_per_task: int = 3  # Side by side.

  def __post_init__(self) -> None:
    ranges.distinct(self, "games", "temperatures")
    ranges.one_of(self, "games", GAMES)
    ranges.positive(self, "temperatures")
    ranges.at_least(self, 2, "num_members", "num_points")
    # An episode must end before each point.
    ranges.at_least(self, self.num_points * small.TIME_LIMIT, "num_steps")
    ranges.at_least(self, 1, "num_seeds", "seeds_per_task")
    if 1.0 not in self.temperatures:
      raise ValueError("temperatures are without 1, the paper's own; add it.")


def _tasks(config: Config) -> list[types.Task]:
  agents: list[tuple[str, float | None]] = [
    (agent, None) for agent in small.AGENTS if agent != _INFOGAIN
  ]
  agents += [(_INFOGAIN, temperature) for temperature in config.temperatures]
  return [
    types.Task(
      f"{GAMES[game].partition('/')[0]}_{agent}{temperature or ''}_seed{seeds[0]}",
      {
        "environment": GAMES[game],
        "agent": agent,
        "temperature": temperature,
        "num_members": config.num_members,
        "prior_scale": 0.0,
        "num_steps": config.num_steps,
        "num_points": config.num_points,
        "seeds": seeds,
      },
      weight=len(seeds) * (2.0 if game == "Breakout" else 1.0),
    )
    for game in config.games
    for agent, temperature in agents
    for seeds in types.seed_chunks(config.num_seeds, config.seeds_per_task)
  ]


def published() -> dict[str, dict[str, float]]:
  """Table 2: algorithm → game → the best mean of 100 episodes, of 49 games."""
  return published_lib.table2(__package__, {name: name for name in _PUBLISHED})


Curves = Mapping[str, Mapping[str, np.ndarray]]  # Label → game → `[S, P]`.


def _curves(config: Config, table: types.Table) -> tuple[Curves, Curves]:
  """The curves of the five agents, and of UCB and InfoGain at each temperature."""

  def of(agent: str, temperature: float | None) -> dict[str, np.ndarray]:
    return {
      game: table.joined(
        "curve", environment=GAMES[game], agent=agent, temperature=temperature
      )
      for game in config.games
    }

  agents = {
    label: of(agent, 1.0 if agent == _INFOGAIN else None)
    for agent, label in small.AGENTS.items()
  }
  by_temperature = {small.AGENTS["ucb"]: of("ucb", None)} | {
    f"InfoGain, T = {t:g}": of(_INFOGAIN, t) for t in sorted(config.temperatures)
  }
  return agents, by_temperature


def _draw(config: Config, table: types.Table) -> types.Drawing:
  columns = max(3, len(config.games))
  fig, (top, bottom) = drawing.new(2, columns, width=3.9, height=3.2)
  _draw_published(top[0])
  agents, by_temperature = _curves(config, table)
  x = small.points(dataclasses.asdict(config)) / 1000
  steps = "environment steps (thousands)"
  for axes, curves, title in (
    (top[1], agents, "normalised, all games"),
    (top[2], by_temperature, "InfoGain, normalised, all games"),
  ):
    panels.curves(axes, x, atari57.normalised_curves(curves))
    small_legend = {"fontsize": "x-small", "loc": "best"}
    panels.finish(
      axes, title=title, legend=small_legend, xlabel=steps, ylabel="normalised return"
    )
  for axes, game in zip(bottom, config.games, strict=False):
    panels.curves(axes, x, {label: own[game] for label, own in by_temperature.items()})
    panels.finish(
      axes, title=f"InfoGain: {game}", xlabel=steps, ylabel="return of 100 episodes"
    )
  for axes in (*top[3:], *bottom[len(config.games) :]):
    axes.set_axis_off()
  return fig


def _draw_published(axes: types.Axes) -> None:
  counts = atari57.best_by_category(published())
  left = np.zeros(len(_CATEGORIES))
  for index, (name, label) in enumerate([*_PUBLISHED.items(), ("tied", "tied")]):
    width = np.array([counts[category][name] for category in _CATEGORIES])
    color = drawing.style(index).color
    axes.barh(list(_CATEGORIES.values()), width, left=left, color=color, label=label)
    left += width
  panels.finish(
    axes,
    title="table 4: Atari games, by table 2",
    legend={"fontsize": "x-small", "loc": "lower right"},
    xlabel="games with the best score",
    xlim=(0, 40),
  )
  axes.invert_yaxis()


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  agents, by_temperature = _curves(config, table)
  normalised = {
    label: np.mean(curve, axis=1)
    for label, curve in atari57.normalised_curves(agents).items()
  }
  double, bootstrapped, voting, ucb, infogain = small.AGENTS.values()

  def above(claim: str, label: str, *others: str) -> types.Finding:
    parts = [
      claims.compare(
        "",
        normalised[label],
        normalised[other],
        f"{{a:.2f}} and {{b:.2f}} ({other}), a difference of {{gap}}",
        spec=".2f",
      )
      for other in others
    ]
    found = claims.all_of(claim, parts)
    return found._replace(measured=f"mean normalised return {found.measured}")

  benefit = above("InfoGain has no uniform benefit on top of UCB", infogain, ucb)
  return [
    *_judge_published(),
    above(
      "small games: ensemble voting is above both baselines",
      voting,
      double,
      bootstrapped,
    ),
    above("small games: UCB exploration is above ensemble voting", ucb, voting),
    benefit._replace(held=claims.negated(benefit.held)),
    *_judge_temperatures(config, by_temperature),
  ]


def _judge_published() -> list[types.Finding]:
  """The findings of table 4, computed from table 2."""
  counts = atari57.best_by_category(published())
  words = [
    f"{label} {', '.join(f'{n} {name}' for name, n in counts[category].items() if n)}"
    for category, label in _CATEGORIES.items()
  ]
  easy = [counts[category] for category in _CATEGORIES if category != "sparse_reward"]
  return [
    types.Finding(
      "Atari, tables 2 and 4: UCB is the best in more games than any other algorithm, "
      "but with sparse rewards",
      "; ".join(words),
      all(c["ucb"] > max(n for name, n in c.items() if name != "ucb") for c in easy),
      2,
    )
  ]


def _judge_temperatures(config: Config, by_temperature: Curves) -> list[types.Finding]:
  """The findings of figure 5, from each seed's mean over the curve."""
  ucb, *labels = by_temperature
  means = {
    game: {label: np.mean(own[game], axis=1) for label, own in by_temperature.items()}
    for game in config.games
  }
  best = {
    game: max(labels, key=lambda label: float(np.mean(of[label])))
    for game, of in means.items()
  }

  def better(game: str, a: str, b: str) -> bool | None:
    """Better by more than 1 % of the largest difference between temperatures."""
    own = means[game]
    margin = 0.01 * np.ptp([np.mean(own[label]) for label in labels])
    return claims.compare("", own[a], own[b] + margin, "").held

  is_same = any(
    all(
      better(game, label, other)
      for game in config.games
      for other in labels
      if other != label
    )
    for label in labels
  )
  differ = [
    (g, h)
    for g, h in itertools.permutations(config.games, 2)
    if best[g] != best[h]
    and better(g, best[g], best[h])
    and better(h, best[h], best[g])
  ]
  listed = "; ".join(
    f"{game}: "
    + ", ".join(f"{np.mean(x):.3g} ({label})" for label, x in means[game].items())
    for game in config.games
  )
  return [
    types.Finding(
      "the best temperature of InfoGain differs between games",
      f"mean return {listed}",
      True if differ else False if is_same else None,
      config.num_seeds,
    ),
    claims.all_of(
      "with its best temperature, InfoGain improves on UCB in each game",
      [
        claims.compare(
          "",
          means[game][best[game]],
          means[game][ucb],
          f"{game}: {best[game]}, a difference of {{gap}}",
          spec=".3g",
        )
        for game in config.games
      ],
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
    run=small.play,
    draw=_draw,
    judge=_judge,
  ),
)
