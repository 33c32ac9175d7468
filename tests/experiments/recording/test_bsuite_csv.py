"""bsuite's CSV of a run beside that of bsuite's own logger."""

import numpy as np
import pytest
from bsuite.logging import csv_load, csv_logging

from explorax import environments
from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import bsuite_csv

RESUMED = 5  # After this episode.


@pytest.mark.parametrize(
  ("bsuite_id", "kind"),
  [
    ("deep_sea/0", "jax"),
    *(
      (bsuite_id, kind)
      for bsuite_id in ("deep_sea/0", "catch_noise/1", "memory_len/0")
      for kind in ("whole", "resumed")
    ),
  ],
)
def test_it_is_what_bsuite_logs(bsuite_id, kind, make_episode, tmp_path):
  name = f"bsuite:{bsuite_id}"
  raw = environments.make(name, seed=0).raw
  theirs = csv_logging.wrap_environment(raw, bsuite_id, str(tmp_path / "theirs"))
  if kind == "jax":
    name = bsuite_sweeps.jax_equivalent(bsuite_id)
  environment = environments.make(name, seed=0)
  log, before = bsuite_csv.BsuiteCsv(tmp_path, bsuite_id), {}
  rng = np.random.default_rng(0)
  for number in range(1, 15):
    theirs.reset()
    timestep, total, length = environment.reset(), 0.0, 0
    while not timestep.last():
      if "deep_sea" in bsuite_id and number in (4, 9):
        action = raw._action_mapping[length, length]  # To the treasure.
      else:
        action = rng.integers(environment.action_spec().num_values)
      theirs.step(action)
      timestep = environment.step(action)
      total, length = total + float(timestep.reward), length + 1
    metrics = environments.episode_metrics(environment)
    of_process = {name: value - before.get(name, 0) for name, value in metrics.items()}
    episode = log.with_totals(
      make_episode(
        number, episode_return=total, episode_length=length, metrics=of_process
      )
    )
    if kind != "jax":
      assert episode.metrics == pytest.approx(metrics)
    log.write(episode)
    if kind == "resumed" and number == RESUMED:
      saved, before = log.save(), metrics  # An environment made anew counts from 0.
      log.write(make_episode(6, metrics=metrics))  # Then the run is killed.
      log = bsuite_csv.BsuiteCsv(tmp_path, bsuite_id, saved)
  ours, expected = (
    csv_load.load_bsuite(str(tmp_path / name))[0].select_dtypes("number")
    for name in ("bsuite", "theirs")
  )
  assert list(ours) == list(expected)
  np.testing.assert_allclose(ours, expected, rtol=1e-6)
