"""Settings of figures: their tasks, and what is refused of `--set`."""

import json

import pytest

from explorax.experiments import errors, overrides
from explorax.papers import registry


@pytest.mark.parametrize(
  ("name", "settings", "words"),
  [
    ("ez/fig1", "epsilons=1.5,", r"in \[0, 1\]"),
    ("ez/fig1", "size=4", "size is 4"),
    ("ez/fig2", "exponential=1.0,", "below 1"),
    ("ez/fig2", "uniform=0,", "uniform has 0"),
    ("ez/fig3", "domains=cartpole,", "one of deep_sea"),
    ("ez/fig3", "sizes=1,2", "sizes has 1"),
    ("ez/fig3", "gridworld.ties=last", "ties is 'last'"),
    ("ez/fig3", "gridworld.world=rocks", "world is 'rocks'"),
    ("ez/fig3", "mountain_car.trace_decay=2.0", "trace_decay is 2.0"),
    ("ez/fig3_cartpole", "full.basis=half", "one of full, total"),
    ("ez/fig3_cartpole", "total.basis=full", "both have basis 'full'"),
    ("ez/fig3_cartpole", "seeds_per_task=0", "seeds_per_task is 0"),
    ("ez/fig7", "noises=0.1,0.3 shown=0.1,", "must be 0"),
    ("ez/fig7", "shown=0.15,", "shown has 0.15; it must be one of 0.0, "),
    ("ez/fig7", "noises=0.0,0.1,0.3,0.7,2.0", "noise is 2.0"),
    ("ez/fig11", "densities=0.1,", "2 or more"),
    ("ez/fig11", "densities=0.2,0.1", "rising order"),
    ("ez/fig11", "densities=0.0,1.0", "has no path"),
    ("ez/fig12", "shown=0.12,", "shown has 0.12; it must be one of 0.0, "),
    ("ez/fig13", "densities=0.0,0.97", "lower the density"),
    ("ez/fig14", "sizes=1,3", "sizes has 1"),
    ("ez/fig15", "tolerance=0.0", "tolerance is 0"),
    ("ez/fig15", "gridworld.discount=1.0", "below 1"),
    ("ez/cover", "sizes=4,8", "3 or more"),
    ("ez/cover", "mu=1.0", "mu is 1.0"),
    ("ngu/fig2", "size=4", "it must be odd"),
    ("ngu/fig2", "agents=rnd,rnd", "each of them once"),
    ("ngu/fig2", "eval_every=0", "eval_every is 0"),
    ("ngu/fig2", "num_steps=10", "lower eval_every"),
    ("ngu/fig2", "sequence_length=1", "must be at least 2"),
    ("retrace/fig1", "games=pong,", "games has 'pong'; it must be one of breakout, "),
    ("retrace/fig1", "num_steps=9999", "num_steps is 9999; it must be at least 20000"),
    ("retrace/online", "step_power=0.4", r"step_power is 0.4; it must be in \[0.5, 1"),
    ("retrace/online", "end_prob=1.0", r"end_prob is 1.0; it must be in \(0, 1\)"),
    ("retrace/operators", "num_states=1", "num_states is 1; it must be at least 2"),
    ("retrace/operators", "discount=1.0", r"discount is 1.0; it must be in \(0, 1\)"),
    ("retrace/operators", "lambdas=0.5,", "it must have 1"),
    ("retrace/operators", "worst_share=1.0", "worst_share is 1.0"),
    ("retrace/operators", "distance=1.6", r"distance is 1.6; it must be in \[0, 1.5"),
    ("tdu/fig1", "agents=ngu,", "one of tdu"),
    ("tdu/fig1", "max_episodes=0", "max_episodes is 0"),
    ("tdu/fig2", "betas=-1.0,", "not negative"),
    ("tdu/fig2", "betas=0.0,", "no β above 0"),
    ("tdu/fig2", "rivals=ucb,", "qu, q_ucb"),
    ("tdu/fig4", "prior_scale=-1.0", "not negative"),
    ("tdu/fig5", "betas=0.0,1.0", "leave it out"),
    ("tdu/fig5", "explorers=19,", r"in \[1, 18\]"),
    ("ucb/small", "agents=ucb,dqn", "agents has 'dqn'; it must be one of double_dqn, "),
    ("ucb/small", "num_steps=49999", "num_steps is 49999; it must be at least 50000"),
  ],
)
def test_impossible_settings_are_refused(name, settings, words):
  with pytest.raises((ValueError, errors.SetUpError), match=words):
    overrides.apply(registry.FIGURES[name].config, settings.split())


@pytest.mark.parametrize("figure", registry.FIGURES.values(), ids=lambda f: f.name)
@pytest.mark.parametrize("quick", [False, True])
def test_each_seed_of_a_problem_is_in_one_task(figure, quick):
  config = figure.quick if quick else figure.config
  tasks = figure.tasks(config)
  assert len({task.name for task in tasks}) == len(tasks)
  seeds: dict[str, list[int]] = {}
  for task in tasks:
    problem = {k: v for k, v in task.settings.items() if k != "seeds"}
    own = task.settings.get("seeds", range(config.num_seeds))
    seeds.setdefault(json.dumps(problem), []).extend(own)
  # Some problems have another number of seeds, a setting of its own.
  counts = {n for name, n in vars(config).items() if name.endswith("_seeds")}
  for own in seeds.values():
    assert sorted(own) == list(range(len(own))) and len(own) in counts
