"""Paper 2's figure 2: how much of the Random Disco Maze an agent comes to explore."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax import environments
from explorax.environments import disco_maze, jax_adapter
from explorax.experiments import overrides, presets
from explorax.experiments.figures import types
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.runners import device, evaluation, local

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

# name → (label, preset, what differs from it)
_AGENTS = {
  "learned": ("NGU, learned states", "ngu", ()),
  "random": ("NGU, random projections", "ngu", ("bonus.states=random",)),
  "rnd": ("RND", "r2d2_rnd", ()),
}
# Tells the mazes of evaluations apart from those of training.
_EVALUATION_SEED = 1000


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings; what is not here is the presets', from paper 2's tables 6 and 7.

  Episodes in a small maze are short: the paper's sequences of 50 would be mostly
  padding.
  """

  size: int = 5  # 21 in the paper.
  agents: tuple[str, ...] = tuple(_AGENTS)
  num_steps: int = 60_000  # Environment steps of training; not printed.
  sequence_length: int = 10  # 50 in the paper (table 7).
  sequence_period: int = 5  # 50 in the paper (table 7).
  batch_size: int = 32  # Sequences; 64 in the paper (table 6).
  min_replay_size: int = 2_000  # Environment steps before learning; ours.
  eval_every: int = 6_000  # Environment steps between two evaluations; ours.
  eval_episodes: int = 50  # In each of them; ours.
  num_seeds: int = 5  # Not printed.

  def __post_init__(self):
    disco_maze.DiscoMaze(self.size)  # Refuses impossible sizes.
    unknown = [agent for agent in self.agents if agent not in _AGENTS]
    if unknown or not self.agents or len(set(self.agents)) < len(self.agents):
      raise ValueError(
        f"agents are {self.agents}; choose from {', '.join(_AGENTS)}, none twice."
      )
    for name in ("num_steps", "eval_every", "eval_episodes", "num_seeds"):
      if getattr(self, name) < 1:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
    if self.num_steps < self.eval_every:
      raise ValueError(
        f"num_steps is {self.num_steps} and eval_every {self.eval_every}; there would "
        "be no evaluation before the end: lower eval_every."
      )
    for name in self.agents:
      _agent_config({**dataclasses.asdict(self), "agent": name})


def _agent_config(settings: types.Settings) -> Any:
  """The preset's config for the maze, changed by the settings."""
  _, preset, changes = _AGENTS[settings["agent"]]
  sequences = [
    f"{name}={settings[name]}"
    for name in (
      "sequence_length",
      "sequence_period",
      "batch_size",
      "min_replay_size",
    )
  ]
  config = presets.PRESETS[preset].config_for(f"jax:disco_maze/{settings['size']}")
  return overrides.apply(config, [*sequences, *changes])


def _tasks(config: Config) -> list[types.Task]:
  settings = dataclasses.asdict(config)
  del settings["num_seeds"], settings["agents"]
  return [
    types.Task(f"{agent}_seed{seed}", {**settings, "agent": agent, "seed": seed})
    for agent in config.agents
    for seed in range(config.num_seeds)
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  """Trains a seed; in evaluations the policy is greedy, as in table 7."""
  maze, seed = disco_maze.DiscoMaze(settings["size"]), settings["seed"]
  environment = jax_adapter.JaxEnvironment(maze, seed=seed)
  preset = presets.PRESETS[_AGENTS[settings["agent"]][1]]
  agent = preset.make_agent(_agent_config(settings), environments.spec(environment))
  env_steps, coverage, trained = [], [], []
  steps = 0

  def after_episode(episode: local.Episode) -> None:
    nonlocal steps
    steps = episode.env_steps
    trained.append(episode.metrics["coverage"])

  def after_evaluation(done: evaluation.Evaluation) -> None:
    env_steps.append(done.env_steps)
    coverage.append(np.mean([e.metrics["coverage"] for e in done.episodes]))

  def stop() -> bool:
    tick(min(1.0, steps / settings["num_steps"]))
    return False

  result = device.run(
    agent,
    environment,
    seed=seed,
    num_steps=settings["num_steps"],
    on_episode=after_episode,
    stop=stop,
    evaluation_environment=jax_adapter.JaxEnvironment(
      maze, seed=seed + _EVALUATION_SEED
    ),
    eval_every=settings["eval_every"],
    eval_episodes=settings["eval_episodes"],
    on_evaluation=after_evaluation,
  )
  if result.interrupted:
    raise types.InterruptedTaskError
  return {
    "env_steps": np.array(env_steps, np.int64),
    "coverage": np.array(coverage, np.float64),
    "training_coverage": np.array(trained, np.float32),
  }


def _agents_of(done: Sequence[types.Done]) -> list[str]:
  return list(dict.fromkeys(task.settings["agent"] for task in done))


def _curves(done: Sequence[types.Done], agent: str) -> np.ndarray:
  """The coverage in each evaluation: `[S, E]`."""
  # They are made at the runner's reports, after the same steps of each seed.
  tasks = types.select(done, agent=agent)
  return np.stack([task.results["coverage"] for task in tasks])


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, ((axes,),) = drawing.new(1, 1, width=6.0, height=3.8)
  for index, agent in enumerate(_agents_of(done)):
    label, curves = _AGENTS[agent][0], _curves(done, agent)
    steps = done[0].results["env_steps"]
    drawing.curve(axes, steps, curves, label=label, index=index, markers=True)
  axes.set(
    xlabel="environment steps",
    ylabel="share of positions visited",
    ylim=(0, 1.02),
    title=f"size {done[0].settings['size']}, greedy policy",
  )
  axes.title.set_fontsize("medium")
  axes.legend(fontsize="small", loc="lower right")
  axes.grid(alpha=0.3)
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  last = {agent: _curves(done, agent)[:, -1] for agent in _agents_of(done)}
  if "learned" not in last:
    return []
  findings = []
  for agent in [agent for agent in last if agent != "learned"]:
    gap = statistics.difference(last["learned"], last[agent])
    what = _AGENTS[agent][0].removeprefix("NGU, ")
    findings.append(
      types.Finding(
        f"learned controllable states explore more than {what}",
        f"share of positions in the last evaluation {np.mean(last['learned']):.3g} and "
        f"{np.mean(last[agent]):.3g}, a difference of {gap.value:.3g} "
        f"[{gap.low:.3g}, {gap.high:.3g}]",
        bool(gap.low > 0),
      )
    )
  interval = statistics.bootstrap(last["learned"][:, None])
  findings.append(
    types.Finding(
      "with learned states, nearly any maze is explored (at least 0.8 of it)",
      f"share of positions {interval.value[0]:.3g} "
      f"[{interval.low[0]:.3g}, {interval.high[0]:.3g}]",
      bool(interval.value[0] >= 0.8),
    )
  )
  return findings


FIGURES = (
  types.Figure(
    name="ngu/fig2",
    title="Random Disco Maze: the share of positions visited in an episode",
    source="Badia et al. (2020), Never Give Up, figure 2",
    claim="with learned controllable states the agent learns to explore any maze; with "
    "random projections, and with RND, it only learns to stay alive.",
    config=Config(),
    quick=Config(
      agents=("learned", "rnd"),
      num_steps=300,
      min_replay_size=100,
      batch_size=4,
      eval_every=150,
      eval_episodes=2,
      num_seeds=1,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
