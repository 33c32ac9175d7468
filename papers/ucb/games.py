"""Paper 3's figures 1, 3 and 5 on small games, and its table 4.

Table 4 counts the Atari games of table 2 in which each algorithm is the best, by
difficulty of exploration. The curves are of our own runs.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.environments import atari57
from explorax.papers import algorithms, claims, layers, panels, types
from explorax.papers.ucb import small

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


def _panels(config: Config) -> list[list[panels.Panel | None]]:
  by_temperature = _temperature_lines(config)
  x = small.points(dataclasses.asdict(config)) / 1000
  every = {k: v for k, v in _AGENT_LINES.items() if k != small.AGENTS[_INFOGAIN]}
  hidden: dict[str, Any] = {"yticklabels": []}
  return [
    [
      panels.Panel(
        layers.Rows("curve", {**every, **by_temperature}),
        where={"environment": GAMES[game]},
        grid="x",
        legend=None,
        title=game,
        xlabel="return, mean over the run",
        **(hidden if i else {}),
      )
      for i, game in enumerate(config.games)
    ],
    [
      panels.Panel(
        layers.Curves("curve", by_temperature, x),
        where={"environment": GAMES[game]},
        title=game,
        xlabel="environment steps (thousands)",
        ylabel="mean of 100 returns" if not i else "",
      )
      for i, game in enumerate(config.games)
    ],
  ]


def _ucb_is_best(table: types.Table) -> tuple[str, bool]:
  """Of table 4, computed from table 2."""
  del table
  counts = algorithms.best_by_category(published())
  words = [
    f"{label} {', '.join(f'{n} {name}' for name, n in counts[category].items() if n)}"
    for category, label in _CATEGORIES.items()
  ]
  easy = [counts[category] for category in _CATEGORIES if category != "sparse_reward"]
  return "; ".join(words), all(
    c["ucb"] > max(n for name, n in c.items() if name != "ucb") for c in easy
  )


def _normalised(table: types.Table) -> dict[str, np.ndarray]:
  """Label → mean return `[S, games]`, between the worst and the best of all curves."""
  by_game = [
    algorithms.normalised_curves(
      {
        label: {game: table.joined("curve", environment=game, **where)}
        for label, where in _AGENT_LINES.items()
      }
    )
    for game in table.values("environment")
  ]
  return {
    label: np.stack([game[label].mean(axis=1) for game in by_game], axis=1)
    for label in _AGENT_LINES
  }


def _above(
  config: Config, claim: str, agent: str, others: Sequence[str]
) -> types.Claim:
  """That an agent's mean normalised return is above those of others."""
  label = small.AGENTS[agent]

  def compare(other: str, table: types.Table) -> types.Finding:
    means = _normalised(table)
    measured = f"{{a:.2f}} and {{b:.2f}} ({other}), a difference of {{gap}}"
    return claims.compare(
      "", means[label], means[other], measured, spec=".2f", games=config.games
    )

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
  """Whether the best temperatures of two games are better there than each other."""
  means = _means(config, table)
  listed = "; ".join(
    f"{game}: {', '.join(f'{np.mean(x):.3g} ({label})' for label, x in each.items())}"
    for game, each in means.items()
  )
  best = {game: _best(of_game) for game, of_game in means.items()}
  differ = any(
    claims.all_of(
      "",
      [
        claims.compare("", means[g][best[g]], means[g][best[h]]),
        claims.compare("", means[h][best[h]], means[h][best[g]]),
      ],
    ).held
    for g, h in itertools.combinations(means, 2)
    if best[g] != best[h]
  )
  return f"mean return {listed}", True if differ else None


def _improves_on_ucb(config: Config, game: str, table: types.Table) -> types.Finding:
  means = _means(config, table)[game]
  best, ucb = _best(means), small.AGENTS["ucb"]
  measured = f"{game}: {best}, a difference of {{gap}}"
  return claims.compare("", means[best], means[ucb], measured, spec=".3g")


def _claims(config: Config) -> list[types.Claim]:
  baselines = ("double_dqn", "bootstrapped_dqn_no_prior")
  above = functools.partial(_above, config)
  return [
    lambda table: types.Finding(
      "Atari, tables 2 and 4: UCB is the best in more games than any other algorithm, "
      "but with sparse rewards",
      *_ucb_is_best(table),
      2,  # Seeds of table 2.
      "published",
      "counted",
    ),
    above("small games: voting is above both baselines", "ensemble_voting", baselines),
    above("small games: UCB is above voting", "ucb", ["ensemble_voting"]),
    above("InfoGain has no uniform benefit on top of UCB", _INFOGAIN, ["ucb"]),
    claims.Check(
      "the best temperature of InfoGain differs between games",
      functools.partial(_best_temperature_differs, config),
      test="Welch's t in both of two games, Holm",
    ),
    claims.All(
      "with its best temperature, InfoGain improves on UCB in each game",
      [functools.partial(_improves_on_ucb, config, game) for game in config.games],
    ),
  ]


FIGURES = (
  types.Figure(
    name="ucb/fig5",
    title="Q-ensembles on small games, by agent and by the temperature of InfoGain",
    source="Chen et al. (2017), UCB Exploration via Q-Ensembles, figures 1, 3 and 5, "
    "and table 4",
    claim="UCB exploration is the best in most categories of games; in normalised "
    "curves ensemble voting outperforms double DQN and bootstrapped DQN, UCB "
    "outperforms voting, and InfoGain does not lead to a uniform improvement; its best "
    "temperature varies between games, and with it learning improves in those that "
    "require more exploration. The runs are of small games.",
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
    caption="Above: small marks are seeds, large ones their means. Below: thin lines "
    "are seeds, thick ones means. Three seeds.",
    height=2.6,
  ),
)
