"""Paper 5's figure 1: inter-algorithm scores on its games and on small ones."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import atari57
from explorax.papers import algorithms, compute, draw, figures, judge

PAPER = "Munos et al. (2016), Safe and efficient off-policy reinforcement learning"
# The agents of the figure: the preset, and the column of table 2.
AGENTS = {
  "Retrace(1)": ("retrace_dqn", "retrace"),
  "Tree-backup(1)": ("tree_backup_dqn", "tree_backup"),
  "Q-learning": ("one_step_dqn", "dqn"),
  "Q*(1)": ("harutyunyan_dqn", "q_star"),
}
_TRIALS = 4  # Of table 2.
_WINDOWS = 10  # Parts of a run, each with a score.
# The figure shows two of them: at 40 and 200 of the paper's 200 million frames.
EARLY, LAST = 1, 9


class Game(NamedTuple):
  """A small game.

  Attributes:
    env: its environment.
    share: the share of the figure's steps that a run takes.
    is_race: whether its only reward is 1 at a goal, which ends the episode. Then the
      score is the number of goals in a thousand steps, else the mean return.
  """

  env: str
  share: float
  is_race: bool = False


GAMES = {
  "breakout": Game("jax:breakout", 1.0),
  "cartpole_swingup": Game("jax:cartpole_swingup", 0.6),
  "mountain_car": Game("jax:mountain_car,time_limit=1000", 0.5, is_race=True),
  "gridworld": Game("jax:gridworld/10", 0.3, is_race=True),
  "catch": Game("jax:catch", 0.2),
}

# All results → label → scores `[S, games, 10]`, which have a common scale.
Scores = Callable[[figures.Table], Mapping[str, np.ndarray]]


def line(label: str) -> dict[str, Any]:
  """The settings of an agent of `AGENTS`, or of one with another λ: `Retrace(0.9)`."""
  name, _, lambda_ = label.rstrip(")").partition("(")
  agent, _ = AGENTS[f"{name}(1)" if lambda_ else name]
  return {"agent": agent, "changes": [f"target.lambda_={lambda_}"] if lambda_ else []}


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task with appendix F's exploration, on small networks.

  The schedules of ε have the paper's shares of a run: 50,000 frames of each of sixteen
  threads are 1/250 of 200 million frames. All agents, and the other seeds of a task,
  share the draw of its first seed. Every update uses 64 transitions. A perceptron
  replaces the convolutions.

  Returns:
    `scores` `[S, 10]`: of each tenth of the run, of the episodes that end in it.
  """
  game = GAMES[settings["game"]]
  steps = int(game.share * settings["num_steps"])
  epsilon = (
    f"Alternating(decay_steps={steps // 50},period_steps={steps // 250},"
    f"seed={settings['seeds'][0]})"
  )
  changes = [
    *settings["changes"],
    "torso=mlp",
    f"exploration=EpsilonGreedy({epsilon})",
    "batch_size=4",
    f"replay_capacity={steps // 10}",
    f"min_replay_size={steps // 100}",
  ]
  record = compute.train(
    {**settings, "changes": changes}, env=game.env, steps=steps, eval_episodes=0
  )
  scores = [
    window_scores(
      *(
        np.array([getattr(x, name) for x in episodes], np.float64)
        for name in ("env_steps", "episode_return", "episode_length")
      ),
      num_steps=steps,
      is_race=game.is_race,
    )
    for episodes in record.episodes.values()
  ]
  return {"scores": np.stack(scores)}


def window_scores(
  ends: np.ndarray,
  returns: np.ndarray,
  lengths: np.ndarray,
  *,
  num_steps: int,
  is_race: bool,
) -> np.ndarray:
  """A score of each tenth of a run, `[10]`; of episodes `[E]`. See `Game.is_race`."""
  total, count = compute.windows(ends, returns, num_steps, _WINDOWS)
  if is_race:
    steps, _ = compute.windows(ends, lengths, num_steps, _WINDOWS)
    return total / (np.maximum(steps, 1) / 1000)
  return total / count


def by_game(table: figures.Table) -> np.ndarray:
  """The scores of one agent, `[S, games, 10]`."""
  games = [table.joined("scores", game=x) for x in table.values("game")]
  return np.stack(games, axis=1)


def published() -> dict[str, dict[str, float]]:
  """Table 2: label → game → final score, of 60 games at 200 million frames."""
  scores = atari57.published("munos")
  return {label: scores[column] for label, (_, column) in AGENTS.items()}


def times_best(scores: Mapping[str, Mapping[str, float]]) -> dict[str, int]:
  """Agent → the number of games on which no other is better; ties count for all."""
  games = next(iter(scores.values()))
  best = {game: max(own[game] for own in scores.values()) for game in games}
  return {a: sum(own[g] == best[g] for g in games) for a, own in scores.items()}


def inter_algorithm(table: figures.Table) -> dict[str, np.ndarray]:
  """Of our runs, where each seed and tenth is compared by itself; see `Scores`."""
  found = {label: by_game(table.where(**line(label))) for label in AGENTS}
  z = algorithms.inter_algorithm_scores(
    {x: {str(i): y for i, y in enumerate(own.ravel())} for x, own in found.items()}
  )
  return {x: np.reshape([*z[x].values()], own.shape) for x, own in found.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Means(draw.Rows):
  """Rows of mean scores over games, in one of the tenths."""

  scores: Scores
  tenth: int

  def rows(self, table: figures.Table) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    means = {x: z[..., self.tenth].mean(axis=1) for x, z in self.scores(table).items()}
    return {label: (x, np.ones(len(x), bool)) for label, x in means.items()}


def means(scores: Scores, labels: Sequence[str], xlabel: str) -> list[draw.Panel]:
  """Mean scores over games, early and at the end."""
  return [
    _Means(
      lines={label: {} for label in labels},
      x="scores",
      scores=scores,
      tenth=tenth,
      names=tenth == EARLY,
      axes={"title": f"after {(tenth + 1) / _WINDOWS:.0%} of steps", "xlabel": xlabel},
    )
    for tenth in (EARLY, LAST)
  ]


def above(
  scores: Scores, *compared: tuple[str, str, str, int]
) -> Callable[[figures.Table], list[judge.Finding]]:
  """That agents have greater mean scores than others: claim, both labels, tenth."""

  def compare(table: figures.Table) -> list[judge.Finding]:
    z = scores(table)
    return [
      judge.above(
        claim, z[a][..., tenth], z[b][..., tenth], test=judge.paired, spec=".3f"
      )
      for claim, a, b, tenth in compared
      if {a, b} <= {*z}
    ]

  return compare


def _most_best(table: figures.Table) -> judge.Finding:
  del table
  best = times_best(published())
  num_games = len(published()["Q-learning"])
  ties = sum(best.values()) - num_games
  words = ", ".join(f"{label} {number}" for label, number in best.items())
  return judge.Finding(
    "Atari, table 2: Retrace is the best on most games",
    best.pop("Retrace(1)") > max(best.values()),
    _TRIALS,
    measured=f"best on, of {num_games}: {words}, {ties} of them tied",
  )


def _published_above(claim: str, other: str) -> judge.Claim:
  """Of Retrace, over the games of table 2."""

  def compare(table: figures.Table) -> judge.Finding:
    del table
    z = algorithms.inter_algorithm_scores(published())
    a, b = (np.array([*z[label].values()]) for label in ("Retrace(1)", other))
    return judge.above(claim, a, b, test=judge.wilcoxon, spec=".3f", seeds=_TRIALS)

  return compare


def _at_the_end(table: figures.Table) -> np.ndarray:
  return table.joined("scores")[:, LAST]


FIGURES = (
  figures.Figure(
    name="retrace/fig1",
    title="Retrace and its relatives: inter-algorithm scores on small games",
    source=f"{PAPER}, figure 1 and table 2",
    runs=[
      figures.Grid(
        run,
        [line(label) for label in AGENTS],
        {"game": tuple(GAMES), "num_steps": 100_000},
      )
    ],
    # An episode of cartpole_swingup, the longest, must end in each tenth.
    quick={"game": ("gridworld", "catch"), "num_steps": 20_000, "num_seeds": 1},
    panels=[means(inter_algorithm, [*AGENTS], "mean inter-algorithm score")],
    pictures={
      "games": [
        [
          draw.Rows(
            x=_at_the_end,
            lines={label: line(label) for label in AGENTS},
            where={"game": game},
            names=not i,
            axes={
              "title": game.replace("_", " "),
              "xlabel": "goals / 1,000 steps" if GAMES[game].is_race else "return",
            },
          )
          for i, game in enumerate(GAMES)
        ]
      ]
    },
    claims=[
      _most_best,
      _published_above("Atari, table 2: Retrace scores above Q-learning", "Q-learning"),
      _published_above(
        "Atari, table 2: Retrace scores above tree-backup", "Tree-backup(1)"
      ),
      above(
        inter_algorithm,
        *(
          (f"small games: Retrace {when} above {name}", "Retrace(1)", label, tenth)
          for when, name, label, tenth in (
            ("starts", "Q-learning", "Q-learning", EARLY),
            ("ends", "Q-learning", "Q-learning", LAST),
            ("starts", "tree-backup", "Tree-backup(1)", EARLY),
            ("ends", "tree-backup", "Tree-backup(1)", LAST),
            ("ends", "Q*(1)", "Q*(1)", LAST),
          )
        ),
      ),
    ],
    problem="game",
  ),
)
