"""Paper 4's figure 2: on Deep Sea, TDU's bonus against the priors, and its rivals."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax.experiments.figures import tdu_deep_sea, tdu_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

_RIVALS = ("qu", "q_ucb")


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings: TDU's β against the priors' λ, and its two rivals."""

  sizes: tuple[int, ...] = (10, 14)  # N; 10, 12, … 50 in the paper.
  betas: tuple[float, ...] = (0.0, 0.1, 1.0, 3.0)  # 0 to 5 (appendix D.2); 0: BDQN.
  prior_scales: tuple[float, ...] = (0.0, 1.0, 3.0)  # λ (table 3).
  rivals: tuple[str, ...] = ("qu", "q_ucb")  # At their presets' scales: β = 1, λ = 3.
  max_episodes: int = 500  # 10 000 in bsuite.
  num_seeds: int = 3  # Not printed.
  seeds_per_task: int = 3

  def __post_init__(self):
    tdu_runs.check(self)
    tdu_runs.check_scales("betas", self.betas)
    tdu_runs.check_scales("prior_scales", self.prior_scales)
    if max(self.betas) == 0:
      raise ValueError("betas has no β above 0, and without there is no TDU; add one.")
    for rival in self.rivals:
      if rival not in _RIVALS:
        raise ValueError(f"rivals has {rival!r}; there are qu and q_ucb.")


def _tasks(config: Config) -> list[types.Task]:
  agents = [
    (f"beta{beta:g}_prior{scale:g}", tdu_runs.agent_settings(beta, scale))
    for beta in config.betas
    for scale in config.prior_scales
  ]
  return tdu_deep_sea.make_tasks(
    config, agents + [(rival, {"agent": rival}) for rival in config.rivals]
  )


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, (axes,) = drawing.new(1, 3, width=3.7, height=3.3)
  grid = _grid(done)
  betas = sorted({beta for beta, _ in grid})
  prior_scales = sorted({scale for _, scale in grid})
  for panel, version in zip(axes, tdu_deep_sea.VERSIONS, strict=False):
    values = np.array(
      [
        [
          np.mean(tdu_runs.scores(tdu_deep_sea.of_version(grid[b, s], version)))
          for b in betas
        ]
        for s in prior_scales
      ]
    )
    drawing.heat_map(
      panel,
      values,
      title=version,
      label="share of sizes solved",
      vmin=0,
      vmax=1,
      origin="lower",
      aspect="auto",
    )
    panel.set_xticks(range(len(betas)), [f"{b:g}" for b in betas])
    panel.set_yticks(range(len(prior_scales)), [f"{s:g}" for s in prior_scales])
    panel.set(xlabel="bonus scale β (0: BDQN)", ylabel="prior scale λ")
    for (row, column), value in np.ndenumerate(values):
      panel.text(
        column,
        row,
        f"{value:.2f}",
        ha="center",
        va="center",
        color="white" if value < 0.5 else "black",
        fontsize="small",
      )
  tdu_deep_sea.draw_bars(
    axes[2], [("tdu", _like_presets(done)), *_rivals(done).items()]
  )
  return fig


def _grid(done: Sequence[types.Done]) -> dict[tuple[float, float], list[types.Done]]:
  """The tasks of each (β, λ)."""
  grid: dict[tuple[float, float], list[types.Done]] = {}
  for task in done:
    if "beta" in task.settings:
      place = task.settings["beta"], task.settings["prior_scale"]
      grid.setdefault(place, []).append(task)
  return grid


def _rivals(done: Sequence[types.Done]) -> dict[str, list[types.Done]]:
  return {
    agent: types.select(done, agent=agent)
    for agent in tdu_deep_sea.agents_of(done)
    if agent in _RIVALS
  }


def _like_presets(done: Sequence[types.Done]) -> list[types.Done]:
  """Of TDU with the scales that its rivals have, or with those nearest to them."""
  near = min(
    (place for place in _grid(done) if place[0] > 0),
    key=lambda place: (abs(place[1] - 3.0), abs(place[0] - 1.0)),
  )
  return _grid(done)[near]


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  grid = _grid(done)
  most = max(scale for _, scale in grid)

  def with_bonus(scale: float) -> np.ndarray:
    """TDU's scores, averaged over β > 0 and both versions."""
    found = [tdu_runs.scores(x) for (b, s), x in grid.items() if b > 0 and s == scale]
    return np.mean(found, axis=0)

  findings = []
  if (max(grid)[0], 0.0) in grid and most > 0:
    findings.append(
      tdu_runs.compare(
        "priors are instrumental, whatever the bonus",
        with_bonus(most),
        with_bonus(0.0),
        what=f"TDU's share of problems solved with λ = {most:g} and without:",
      )
    )
  if (0.0, most) in grid:
    findings += [
      tdu_runs.compare(
        "with priors, TDU solves more than BDQN (β = 0)",
        with_bonus(most),
        tdu_runs.scores(grid[0.0, most]),
        what=f"share of problems with λ = {most:g}, TDU's and BDQN's:",
      ),
      tdu_runs.compare(
        "BDQN loses where Deep Sea is stochastic",
        tdu_runs.scores(tdu_deep_sea.of_version(grid[0.0, most], "deterministic")),
        tdu_runs.scores(tdu_deep_sea.of_version(grid[0.0, most], "stochastic")),
        what=f"share of sizes with λ = {most:g}, deterministic and stochastic:",
      ),
    ]
  tdu = tdu_runs.scores(_like_presets(done))
  findings += [
    tdu_runs.compare(
      f"{tdu_deep_sea.LABELS[agent]} does not match TDU",
      tdu,
      tdu_runs.scores(tasks),
      what=f"share of problems, TDU's and {tdu_deep_sea.LABELS[agent]}'s:",
    )
    for agent, tasks in _rivals(done).items()
  ]
  return findings


FIGURES = (
  types.Figure(
    name="tdu/fig2",
    title="Deep Sea: TDU's bonus against the priors",
    source=f"{tdu_runs.PAPER}, figure 2",
    claim="prior functions are instrumental, even for large bonuses; for a given prior "
    "scale, TDU does better than Bootstrapped DQN, which loses on the stochastic "
    "version; the same uncertainty of values instead of TD errors (QU, Q+UCB) does not "
    "match it.",
    config=Config(),
    quick=Config(
      sizes=(5,),
      betas=(1.0,),
      prior_scales=(3.0,),
      rivals=(),
      num_seeds=1,
    ),
    tasks=_tasks,
    run=tdu_deep_sea.run,
    draw=_draw,
    judge=_judge,
  ),
)
