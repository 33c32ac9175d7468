"""bsuite's CSV of a run beside that of bsuite's own logger."""

import numpy as np
import pytest
from bsuite.logging import csv_load, csv_logging

from explorax import environments
from explorax.environments import bsuite_sweeps
from explorax.experiments import config as config_lib
from explorax.experiments import output
from explorax.experiments.recording import bsuite_csv, rows

RESUMED = 5  # After this episode an environment made anew counts from 0.


@pytest.mark.parametrize(
  ("bsuite_id", "is_jax"),
  [("deep_sea/0", True), ("deep_sea/0", False), ("memory_len/0", False)],
)
def test_it_is_what_bsuite_logs(bsuite_id, is_jax, make_episode, tmp_path):
  name = f"bsuite:{bsuite_id}"
  raw = environments.make(name, seed=0).raw
  theirs = csv_logging.wrap_environment(raw, bsuite_id, str(tmp_path / "theirs"))
  config = config_lib.RunConfig(agent="dqn", env=name, episodes=13)
  if is_jax:
    name = bsuite_sweeps.jax_equivalent(bsuite_id)
  environment = environments.make(name, seed=0)
  file, before, totals = rows.CsvFile(tmp_path / rows.METRICS), {}, {}
  rng = np.random.default_rng(0)
  for number in range(1, 15):
    timestep, total, length = environment.reset(), 0.0, 0
    if number <= config.episodes:
      theirs.reset()
    while not timestep.last():
      if "deep_sea" in bsuite_id and number in (4, 9):
        action = raw._action_mapping[length, length]  # To the treasure.
      else:
        action = rng.integers(environment.action_spec().num_values)
      if number <= config.episodes:
        theirs.step(action)
      timestep = environment.step(action)
      total, length = total + float(timestep.reward), length + 1
    metrics = environments.episode_metrics(environment)
    since = {name: value - before.get(name, 0) for name, value in metrics.items()}
    since = bsuite_csv.continued(since, totals)
    if not is_jax:
      assert since == pytest.approx(metrics)
    file(
      make_episode(number, episode_return=total, episode_length=length, metrics=since)
    )
    if number == RESUMED and not is_jax:
      before, totals = metrics, bsuite_csv.last_totals(rows.read(file.path))
  file.close()
  directory = output.RunDirectory.create(tmp_path / "run")
  bsuite_csv.write(directory, config, rows.read(file.path))
  ours, expected = (
    csv_load.load_bsuite(str(folder))[0].select_dtypes("number")
    for folder in (directory.path / "bsuite", tmp_path / "theirs")
  )
  assert {*ours} == {*expected}
  np.testing.assert_allclose(ours[[*expected]], expected, rtol=1e-6)
