"""PPO of Stable-Baselines3 in MiniGrid, with and without E3B around its environments.

One setting of each is the best of three in a smaller task with other seeds, with which
the figure begins: PPO's bonus of entropy, and E3B's β.

Needs stable_baselines3 and minigrid beside explorax; benchmarks/peers.py says how to
install them.
"""

import dataclasses
from typing import Any

import numpy as np

from explorax import ranges
from explorax.agents.bonuses import dynamics, e3b
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.bonuses import minigrid

_PPO, _BOTH = "PPO", "PPO with E3B"
_TUNED = {_PPO: "ent_coef", _BOTH: "beta"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure.

  PPO's are those of rl-baselines3-zoo for MiniGrid-DoorKey-5x5-v0 (hyperparams/ppo.yml)
  without its normalisation of observations and rewards, and with a bonus of entropy.
  """

  environment: str = "MiniGrid-DoorKey-6x6-v0"
  num_steps: ranges.PositiveInt = 300_000  # Of all environments.
  num_envs: ranges.PositiveInt = 8
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  num_seeds: ranges.PositiveInt = 5
  entropies: types.Distinct[ranges.PositiveFloat] = (0.003, 0.01, 0.03)
  # The bonus of entropy is then 0.01.
  betas: types.Distinct[ranges.PositiveFloat] = (0.0003, 0.001, 0.003)
  tuning_environment: str = "MiniGrid-DoorKey-5x5-v0"
  tuning_steps: ranges.PositiveInt = 100_000
  first_tuning_seed: ranges.Seed = 200
  num_tuning_seeds: ranges.PositiveInt = 2


def _tuning(config: Config) -> list[types.Task]:
  values = {_PPO: config.entropies, _BOTH: config.betas}
  return [
    task
    for label, each in values.items()
    for value in each
    for task in _tasks(config, label, value, tuning=True)
  ]


def _then(config: Config, tuned: types.Table) -> list[types.Task]:
  """The task itself, with the best values."""
  return [
    task
    for label, value in minigrid.best(tuned).items()
    for task in _tasks(config, label, value, tuning=False)
  ]


def _tasks(
  config: Config, label: str, value: float, *, tuning: bool
) -> list[types.Task]:
  num_steps = config.tuning_steps if tuning else config.num_steps
  return types.split(
    f"{'tuning_' * tuning}{_TUNED[label]}_{value:g}",
    {
      "tuning": tuning,
      "environment": config.tuning_environment if tuning else config.environment,
      "method": label,
      "value": value,
      "ent_coef": 0.01,
      "beta": 0.0,
      _TUNED[label]: value,
      "num_steps": num_steps,
      "num_envs": config.num_envs,
    },
    config.num_tuning_seeds if tuning else config.num_seeds,
    seconds_per_seed=num_steps,
    first_seed=config.first_tuning_seed if tuning else config.first_seed,
  )


def run(settings: types.Settings) -> types.Results:
  """Trains PPO with one seed; returns its `minigrid.successes`."""
  import gymnasium  # noqa: PLC0415
  import stable_baselines3  # noqa: PLC0415
  from minigrid import wrappers  # noqa: PLC0415
  from stable_baselines3.common import callbacks, env_util  # noqa: PLC0415

  from explorax.agents.bonuses.wrappers import sb3_wrapper  # noqa: PLC0415

  (seed,), num_steps = settings["seeds"], settings["num_steps"]

  def make() -> gymnasium.Env:
    return wrappers.ImgObsWrapper(gymnasium.make(settings["environment"]))

  venv: Any = env_util.make_vec_env(make, n_envs=settings["num_envs"], seed=seed)
  if settings["beta"]:
    model = dynamics.Dynamics(hidden_sizes=(64,), embedding_size=32, hidden_size=64)
    bonus = e3b.E3B(dataclasses.replace(model, learning_rate=1e-3))
    venv = sb3_wrapper.BonusVecEnv(venv, bonus, beta=settings["beta"], seed=seed)
  ends: list[tuple[int, float]] = []

  class Count(callbacks.BaseCallback):
    def _on_step(self) -> bool:
      for info in self.locals["infos"]:
        if "episode" in info:  # Monitor's, of the environment's rewards alone.
          ends.append((self.num_timesteps, info["episode"]["r"]))
      return True

  ppo = stable_baselines3.PPO(
    "MlpPolicy",
    venv,
    n_steps=128,
    batch_size=64,
    n_epochs=10,
    learning_rate=2.5e-4,
    ent_coef=settings["ent_coef"],
    policy_kwargs={"normalize_images": False},  # They are cells.
    seed=seed,
    device="cpu",
  )
  ppo.learn(num_steps, callback=Count())
  return minigrid.successes({seed: ends}, num_steps)


def _claims(config: Config) -> list[types.Claim]:
  """Two tests, corrected by Holm's method."""
  del config
  both, ppo = ({"tuning": False, "method": label} for label in (_BOTH, _PPO))

  def sooner(table: types.Table) -> types.Finding:
    groups = [table.where(**where) for where in (both, ppo)]
    return claims.sooner(
      "PPO with E3B solves the task in fewer steps",
      [
        significance.Times(minigrid.steps_to_solve(x), minigrid.is_solved(x))
        for x in groups
      ],
      "with and without E3B",
      unit="steps",
    )

  more = claims.Compare(
    "with E3B a greater share of PPO's training episodes reaches the goal",
    "success",
    both,
    ppo,
    "shares {a:.2g} and {b:.2g}, a difference of {gap}",
    spec=".2f",
  )
  return claims.corrected([more, sooner])


def _panels(config: Config) -> list[list[panels.Panel]]:
  ends = np.arange(1, minigrid.NUM_BINS + 1) * config.num_steps / minigrid.NUM_BINS
  lines = {label: {"method": label} for label in _TUNED}
  return [
    [
      panels.Panel(
        layers.Curves("successes", lines, ends),
        where={"tuning": False},
        xlabel="environment steps",
        ylabel="share of episodes at the goal",
      )
    ]
  ]


FIGURES = (
  types.Figure(
    name="bonuses/ppo",
    title="MiniGrid-DoorKey-6x6: PPO of Stable-Baselines3 with E3B's wrapper",
    source="Our own",
    claim="the wrapper makes PPO explore, without any change to PPO.",
    config=Config(),
    quick=Config(
      "MiniGrid-DoorKey-5x5-v0",
      num_steps=2_000,
      num_seeds=1,
      entropies=(0.01,),
      betas=(0.001,),
      tuning_steps=1_000,
      num_tuning_seeds=1,
    ),
    tasks=_tuning,
    then=_then,
    compute=run,
    panels=_panels,
    claims=_claims,
    text=lambda config, table: minigrid.tuning_text(
      table, config.tuning_environment, _TUNED
    ),
    caption="The share of the training episodes that reach the goal, in thirtieths of "
    "a run. Thick lines: means; thin lines: seeds.",
    kind="ours",
    large=True,
  ),
)
