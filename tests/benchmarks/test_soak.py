"""The checks of the soak test find a wrong count."""

import json

import pytest


@pytest.fixture(scope="module")
def soak(load):
  return load("soak")


def _write(directory, episodes):
  lines = [f"{number},{10 * number},10" for number in episodes]
  text = "\n".join(["episode,env_steps,episode_length", *lines, ""])
  (directory / "metrics.csv").write_text(text)
  (directory / "evaluation.csv").write_text("env_steps,episode,episode_return\n9,1,1\n")
  summary = {"status": "finished", "env_steps": 30, "episodes": len(episodes)}
  (directory / "summary.json").write_text(json.dumps(summary))


def test_a_run_in_which_all_is_counted_once_passes(soak, tmp_path):
  _write(tmp_path, [1, 2, 3])
  assert all(soak.check(tmp_path, 0, 30).values())
  assert not soak.check(tmp_path, 1, 30)["the run finished"]
  assert not soak.check(tmp_path, 0, 31)["the run finished"]


@pytest.mark.parametrize("episodes", [[1, 2, 2, 3], [1, 3]])
def test_an_episode_that_is_there_twice_or_missing_fails(soak, tmp_path, episodes):
  _write(tmp_path, episodes)
  assert not soak.check(tmp_path, 0, 30)["episodes are counted once"]
