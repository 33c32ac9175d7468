"""When a run warns that the values of its learner diverge."""

import pytest

from explorax.experiments import config as config_lib
from explorax.experiments import output
from explorax.experiments.recording import recorder, summary, warnings


@pytest.mark.parametrize(
  ("q", "bound", "updates", "diverges"),
  [
    ([160.0, 400.0], 100.0, [500, 1500], True),
    ([160.0, 400.0], 100.0, [500, 1499], False),  # Not long enough.
    ([160.0, 140.0, 160.0], 100.0, [0, 800, 1600], False),  # Below in between.
    ([14.0, 14.0], 0.1, [0, 90_000], False),  # Priors, in sparse rewards.
    ([16.0, 16.0], 0.0, [0, 1000], True),
  ],
)
def test_values_diverge_if_they_stay_above_the_bound(
  make_episode, q, bound, updates, diverges
):
  watch = warnings.Divergence()
  message = watch([make_episode(1)._replace(metrics={})])  # Before the first update.
  for value, number in zip(q, updates, strict=True):
    metrics = {"q": value, "q_bound": bound}
    assert message is None
    message = watch([make_episode(2)._replace(learner_updates=number, metrics=metrics)])
  assert (message is not None) == diverges
  if diverges:
    for number in (abs(q[-1]), 20, bound):
      assert f" {number:g}" in message


def test_a_run_of_several_seeds_warns_once(make_episode, tmp_path, capsys):
  config = config_lib.RunConfig(
    agent="dqn", env="x:y", seed=1, num_seeds=2, steps=10, runner="device"
  )
  directory = output.RunDirectory.create(tmp_path / "run")
  record = {"env": config.env, "seed": 1}
  made = recorder.Recorder(directory, config, record)
  for number in range(1, 4):
    of_seeds = [{"q": -999.0 * seed, "q_bound": 20.0} for seed in (1, 2)]
    made.on_episodes(
      [
        make_episode(number, learner_updates=600 * number, metrics=x, seed=seed)
        for seed, x in enumerate(of_seeds, 1)
      ]
    )
  made.finish(summary.End("interrupted", 1.0), {})
  warning = capsys.readouterr().err
  assert "seed 1" in warning and "999" in warning and warning.count("\n") == 1


def test_targets_beyond_the_atoms_are_named_once(make_episode):
  record = {"config": {"target": {"max_abs_value": 100.0}}}
  watch = warnings.CutTargets(record)
  message = None
  for low, high in ((-3.0, 109.0), (-2.0, 1010.0)):
    assert message is None
    metrics = {"target_min": low, "target_max": high}
    message = watch([make_episode(1)._replace(metrics=metrics)])
  for number in ("-3", "1010", "100"):
    assert number in message
  for other in ({}, {"config": {"target": {}}}, {"config": {"module": "x"}}):
    silent = warnings.CutTargets(other)
    assert silent([make_episode(1)._replace(metrics=metrics)]) is None
