"""Paper 2's figure 2: how much of the Random Disco Maze an agent comes to explore."""

import dataclasses
from typing import Any

import numpy as np

from explorax import environments
from explorax.agents import ranges
from explorax.environments import disco_maze, jax_adapter
from explorax.experiments import config as config_lib
from explorax.experiments import overrides, presets
from explorax.experiments.figures import claims, panels, types
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.runners import core, device

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
    ranges.distinct(self, "agents")
    ranges.one_of(self, "agents", _AGENTS)
    ranges.at_least(self, 1, "num_steps", "eval_every", "eval_episodes", "num_seeds")
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
  names = ("sequence_length", "sequence_period", "batch_size", "min_replay_size")
  config = presets.PRESETS[preset].config_for(f"jax:disco_maze/{settings['size']}")
  return overrides.apply(config, [*(f"{x}={settings[x]}" for x in names), *changes])


def _tasks(config: Config) -> list[types.Task]:
  settings = dataclasses.asdict(config)
  del settings["num_seeds"], settings["agents"]
  return [
    types.Task(f"{agent}_seed{seed}", {**settings, "agent": agent, "seeds": [seed]})
    for agent in config.agents
    for seed in range(config.num_seeds)
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  """Trains a seed; in evaluations the policy is greedy, as in table 7.

  Returns:
    `env_steps` and `coverage` of the E evaluations, `[1, E]`; `training_coverage` of
    all training episodes.
  """
  maze, (seed,) = disco_maze.DiscoMaze(settings["size"]), settings["seeds"]
  environment = jax_adapter.JaxEnvironment(maze, seed=seed)
  preset = presets.PRESETS[_AGENTS[settings["agent"]][1]]
  agent = preset.make_agent(_agent_config(settings), environments.spec(environment))
  env_steps, coverage, trained = [], [], []
  steps = 0

  def after_episode(episode: core.Episode) -> None:
    nonlocal steps
    steps = episode.env_steps
    trained.append(episode.metrics["coverage"])

  def after_evaluation(done: core.Evaluation) -> None:
    env_steps.append(done.env_steps)
    coverage.append(np.mean([e.metrics["coverage"] for e in done.episodes]))

  def stop() -> bool:
    tick(min(1.0, steps / settings["num_steps"]))
    return False

  result = device.run(
    agent,
    environment,
    config_lib.RunConfig(
      runner="device",
      seed=seed,
      steps=settings["num_steps"],
      eval_every=settings["eval_every"],
      eval_episodes=settings["eval_episodes"],
    ),
    core.Hooks(on_episode=after_episode, on_evaluation=after_evaluation, stop=stop),
    evaluation_environment=jax_adapter.JaxEnvironment(
      maze, seed=seed + _EVALUATION_SEED
    ),
  )
  if result.interrupted:
    raise types.InterruptedTaskError
  return {
    "env_steps": np.array([env_steps], np.int64),
    "coverage": np.array([coverage], np.float64),
    "training_coverage": np.array([trained], np.float32),
  }


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, ((axes,),) = drawing.new(1, 1, width=6.0, height=3.8)
  for index, agent in enumerate(config.agents):
    # Evaluations are made at the runner's reports, after the same steps of each seed.
    steps, coverage = (table.joined(x, agent=agent) for x in ("env_steps", "coverage"))
    label = _AGENTS[agent][0]
    drawing.curve(axes, steps[0], coverage, label=label, index=index, markers=True)
  panels.finish(
    axes,
    title=f"size {config.size}, greedy policy",
    legend="lower right",
    xlabel="environment steps",
    ylabel="share of positions visited",
    ylim=(0, 1.02),
  )
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  last = {
    agent: table.joined("coverage", agent=agent)[:, -1] for agent in config.agents
  }
  if "learned" not in last:
    return []
  learned = last.pop("learned")
  interval = statistics.mean(learned)
  return [
    *(
      claims.compare_means(
        "learned controllable states explore more than "
        + _AGENTS[agent][0].removeprefix("NGU, "),
        learned,
        other,
        "share of positions in the last evaluation",
      )
      for agent, other in last.items()
    ),
    types.Finding(
      "with learned states, nearly any maze is explored (at least 0.8 of it)",
      f"share of positions {interval.words()}",
      interval.is_above(0.8),
    ),
  ]


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
