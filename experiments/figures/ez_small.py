"""Paper 1's figure 3: DeepSea, GridWorld and MountainCar, learnt and explored."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.figures import ez_domains, ez_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

_DOMAINS: dict[str, Any] = {
  "deep_sea": ez_domains.DeepSea,
  "gridworld": ez_domains.GridWorld,
  "mountain_car": ez_domains.MountainCar,
}
NEAR_OPTIMAL = 0.29  # Discounted return in MountainCar (appendix B).


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure; those of each domain are in `ez_domains`."""

  domains: tuple[str, ...] = tuple(_DOMAINS)  # CartPole is a figure of its own.
  sizes: tuple[int, ...] = (5, 8, 10, 12, 15, 20)  # N; figure 3 is silent.
  # Its own size is the map's (appendix B).
  deep_sea: ez_domains.DeepSea = dataclasses.field(default_factory=ez_domains.DeepSea)
  # Learnt with both readings of ties.
  gridworld: ez_domains.GridWorld = dataclasses.field(
    default_factory=ez_domains.GridWorld
  )
  mountain_car: ez_domains.MountainCar = dataclasses.field(
    default_factory=ez_domains.MountainCar
  )
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self):
    ez_runs.check_not_empty(self, "domains", "sizes")
    ez_runs.check_at_least(self, sizes=2, num_seeds=1)
    for domain in self.domains:
      if domain not in _DOMAINS:
        raise ValueError(
          f"domains has {domain!r}; choose among {', '.join(_DOMAINS)}; CartPole is "
          "the figure ez/fig3_cartpole."
        )


def _tasks(config: Config) -> list[types.Task]:
  tasks = []

  def add(
    name: str, domain: str, what: str, rule: str, setup: Any, weight: float
  ) -> None:
    settings = {
      "domain": domain,
      "what": what,
      "rule": rule,
      "setup": dataclasses.asdict(setup),
      "num_seeds": config.num_seeds,
    }
    tasks.append(types.Task(f"{name}_{rule}", settings, weight))

  for domain in config.domains:
    setup = getattr(config, domain)
    for rule in ez_runs.RULES:
      if domain == "deep_sea":
        for size in config.sizes:
          resized = dataclasses.replace(setup, size=size)
          add(f"deep_sea_{size}", domain, "learning", rule, resized, size)
      elif domain == "gridworld":
        for ties in ("fixed", "random"):
          tied = dataclasses.replace(setup, ties=ties)
          add(f"gridworld_{ties}", domain, "learning", rule, tied, 10)
      else:
        add("mountain_car", domain, "learning", rule, setup, 400)
      add(f"{domain}_map", domain, "map", rule, setup, 10)
  return tasks


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  setup = _DOMAINS[settings["domain"]](**settings["setup"])
  if settings["what"] == "map":
    return setup.wander(settings["rule"], settings["num_seeds"])
  return setup.learn(settings["rule"], (0, settings["num_seeds"]))


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  domains = [d for d in _DOMAINS if types.select(done, domain=d)]
  fig, axes = drawing.new(len(domains), 3, width=3.9, height=2.9)
  for row, domain in zip(axes, domains, strict=True):
    learning = types.select(done, domain=domain, what="learning")
    if domain == "deep_sea":
      draw_deep_sea(row[0], learning)
    else:
      _draw_curves(row[0], learning, domain)
    row[0].set_title(_DOMAINS[domain].label, fontsize="medium")
    draw_maps(row[1:], types.select(done, domain=domain, what="map"), _DOMAINS[domain])
  return fig


def draw_maps(axes: np.ndarray, done: Sequence[types.Done], domain: Any) -> None:
  """The maps of first visits of both rules, on one scale.

  Args:
    axes: two.
    done: a task for each rule.
    domain: the class of `ez_domains` whose `to_map` draws.
  """
  values = []
  for task in done:
    mean = task.results["first_visits"].mean(axis=0)
    values.append(domain(**task.settings["setup"]).to_map(mean))
  logarithmic = domain is ez_domains.DeepSea
  ez_runs.maps(
    axes,
    values,
    [f"{ez_runs.LABELS[task.settings['rule']]}, ε = 1" for task in done],
    "log(mean first visit + 1)" if logarithmic else "mean first visit (step)",
  )
  for ax in axes:
    ax.set_xlabel(domain.map_axes[0], fontsize="small")
  axes[0].set_ylabel(domain.map_axes[1], fontsize="small")


def draw_deep_sea(axes: "mpl_axes.Axes", done: Sequence[types.Done]) -> None:
  """The median of the episodes to the first goal against the size."""
  sizes = deep_sea_sizes(done)
  for index, rule in enumerate(ez_runs.RULES):
    drawing.curve(
      axes,
      sizes,
      deep_sea_episodes(done, rule),
      label=ez_runs.LABELS[rule],
      index=index,
      statistic=_median,
      markers=True,
    )
  most = done[0].settings["setup"]["episodes"]
  axes.plot(sizes, 2.0**sizes, color="#7F7F7F", linewidth=1, label="$2^N$")
  axes.axhline(most, color="#7F7F7F", linestyle=":", linewidth=1, label="given up")
  axes.set(xlabel="size N", ylabel="episodes to the first goal\n(median)", yscale="log")
  axes.set_ylim(1, 3 * most)
  axes.legend(fontsize="small", loc="lower right")
  axes.grid(alpha=0.3)


def _draw_curves(
  axes: "mpl_axes.Axes", done: Sequence[types.Done], domain: str
) -> None:
  curves = {}
  for task in done:
    ties = task.settings["setup"].get("ties")
    label = ez_runs.LABELS[task.settings["rule"]] + (f", {ties} ties" if ties else "")
    curves[label] = task.results["discounted_returns"]
  ez_runs.curves(axes, curves)
  if domain == "mountain_car":
    axes.axhline(
      NEAR_OPTIMAL, color="#7F7F7F", linestyle=":", linewidth=1, label="near-optimal"
    )
  axes.legend(fontsize="small", loc="upper left")


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  findings = []
  deep_sea = types.select(done, domain="deep_sea", what="learning")
  if deep_sea:
    findings += _judge_deep_sea(deep_sea)
  for ties in ("fixed", "random"):
    learning = [
      task
      for task in types.select(done, domain="gridworld", what="learning")
      if task.settings["setup"]["ties"] == ties
    ]
    findings += judge_returns(learning, f"GridWorld, {ties} ties")
  mountain_car = types.select(done, domain="mountain_car", what="learning")
  findings += judge_returns(mountain_car, "MountainCar")
  if mountain_car:
    results = ez_runs.one(mountain_car, rule="ez")["discounted_returns"]
    last = results[:, -max(1, results.shape[1] // 10) :].mean()
    findings.append(
      types.Finding(
        "MountainCar: εz-greedy gets near the near-optimal 0.29 (0.2 at least)",
        f"{last:.3f} in the last tenth of the episodes",
        bool(last >= 0.2),
      )
    )
  for domain, kind in _DOMAINS.items():
    findings += judge_maps(types.select(done, domain=domain, what="map"), kind.label)
  return findings


def judge_returns(done: Sequence[types.Done], label: str) -> list[types.Finding]:
  """Whether εz-greedy earns more than ε-greedy; nothing if there are no tasks."""
  if not done:
    return []
  a, b = (
    ez_runs.one(done, rule=rule)["discounted_returns"].mean(axis=1)
    for rule in ("ez", "epsilon")
  )
  interval, words = ez_runs.gap(a, b)
  return [
    types.Finding(
      f"{label}: εz-greedy earns more, over all episodes",
      f"discounted return {a.mean():.3f} against {b.mean():.3f}, {words}",
      bool(interval.low > 0),
    )
  ]


def judge_maps(done: Sequence[types.Done], label: str) -> list[types.Finding]:
  """Whether εz-greedy visits states earlier; nothing if there are no tasks.

  Of the cells that no trial of either rule ever got to, many cannot be reached at all:
  they are left out.
  """
  if not done:
    return []
  results = [ez_runs.one(done, rule=rule) for rule in ("ez", "epsilon")]
  reached = np.any([result["visited"].any(axis=0) for result in results], axis=0)
  a, b = (result["first_visits"][:, reached].mean(axis=1) for result in results)
  shares = [result["visited"][:, reached].mean() for result in results]
  interval, words = ez_runs.gap(a, b)
  return [
    types.Finding(
      f"{label}: at ε = 1, εz-greedy visits states earlier",
      f"mean first visit {a.mean():.0f} against {b.mean():.0f} steps, {words}; "
      f"{shares[0]:.1%} against {shares[1]:.1%} of the cells visited",
      bool(interval.high < 0),
    )
  ]


def _judge_deep_sea(done: Sequence[types.Done]) -> list[types.Finding]:
  sizes = deep_sea_sizes(done)
  most = done[0].settings["setup"]["episodes"]
  medians = {
    rule: np.median(deep_sea_episodes(done, rule), axis=0) for rule in ez_runs.RULES
  }
  ratio = medians["ez"] / 2.0**sizes
  largest, last_words = ez_runs.gap(
    deep_sea_episodes(done, "ez")[:, -1],
    deep_sea_episodes(done, "epsilon")[:, -1],
    _median,
  )
  grows = medians["epsilon"] >= np.minimum(2.0**sizes, most) / 4
  return [
    types.Finding(
      "DeepSea: εz-greedy finds the goal in fewer episodes than ε-greedy at the "
      "largest N",
      f"{deep_sea_medians(done)}; at N = {sizes[-1]} {last_words}",
      bool(largest.high < 0),
    ),
    types.Finding(
      "DeepSea: the episodes of ε-greedy grow as 2^N at least (within a factor of 4, "
      "or given up), those of εz-greedy slower",
      f"εz-greedy needs {ratio[0]:.2g} · 2^N at N = {sizes[0]}, {ratio[-1]:.2g} · 2^N "
      f"at N = {sizes[-1]}",
      bool(grows.all() and ratio[-1] < ratio[0] / 4 and medians["ez"][-1] < most),
    ),
  ]


def deep_sea_sizes(done: Sequence[types.Done]) -> np.ndarray:
  """The sizes that were learnt, `[V]`."""
  tasks = types.select(done, rule="ez")
  return np.array([task.settings["setup"]["size"] for task in tasks])


def deep_sea_episodes(done: Sequence[types.Done], rule: str) -> np.ndarray:
  """`[S, V]`; where the goal was never found, all there were."""
  tasks = types.select(done, rule=rule)
  return np.stack([task.results["episodes"] for task in tasks], axis=1)


def deep_sea_medians(done: Sequence[types.Done]) -> str:
  """The medians over seeds of the episodes, for each rule, in words."""
  most = done[0].settings["setup"]["episodes"]
  words = []
  for rule in ez_runs.RULES:
    medians = np.median(deep_sea_episodes(done, rule), axis=0)
    numbers = ", ".join(f"{'>' if x >= most else ''}{x:.0f}" for x in medians)
    words.append(f"{ez_runs.LABELS[rule]} {numbers}")
  sizes = ", ".join(map(str, deep_sea_sizes(done)))
  return f"medians at N = {sizes}: {'; '.join(words)}"


def _median(x: np.ndarray) -> np.ndarray:
  return np.median(x, axis=-2)


FIGURES = (
  types.Figure(
    name="ez/fig3",
    title="ε-greedy and εz-greedy in DeepSea, GridWorld and MountainCar",
    source=f"{ez_runs.PAPER}, figure 3a to c",
    claim="εz-greedy performs significantly better in these domains, and covers the "
    "states significantly better in pure exploration.",
    config=Config(),
    quick=Config(
      sizes=(4, 6),
      domains=("deep_sea", "gridworld"),
      deep_sea=ez_domains.DeepSea(size=8, episodes=300, map_steps=1000),
      gridworld=ez_domains.GridWorld(size=8, episodes=20, map_steps=500),
      mountain_car=ez_domains.MountainCar(episodes=2, map_steps=500),
      num_seeds=5,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
