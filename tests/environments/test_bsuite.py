"""bsuite: every id, its data, its sweeps and its metrics."""

import gzip
import struct

import numpy as np
import pytest
from bsuite import bsuite, sweep

from explorax import environments
from explorax.environments import bsuite_sweeps, specs

EXPERIMENTS = sorted(bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT)
WITHOUT_DATA = [name for name in EXPERIMENTS if not name.startswith("mnist")]


@pytest.mark.parametrize("experiment", WITHOUT_DATA)
def test_every_id_loads_and_steps(experiment, capsys):
  ids = [i for i in sweep.SWEEP if i.partition("/")[0] == experiment]
  assert len(ids) >= 17
  for bsuite_id in ids:
    environment = environments.make(f"bsuite:{bsuite_id}", seed=0)
    environment.observation_spec().validate(environment.reset().observation)
    environment.observation_spec().validate(environment.step(0).observation)
    is_one_hot = isinstance(environment.observation_spec(), specs.OneHotArray)
    assert is_one_hot == experiment.startswith("deep_sea")
  assert capsys.readouterr().out == ""


def _solved(rule, bad):
  """The rule's answer for a sequence of good (0) and bad (1) episodes."""
  for episode, is_bad in enumerate(bad, start=1):
    rule.add_episode(episode, {"bad_episode": float(is_bad)})
  return rule.solved_episode


def test_solved_rule_is_bsuites_own_on_random_episodes():
  """Whether the environment counts bad episodes over its life, or one at a time."""
  rng = np.random.default_rng(0)
  for _ in range(20):
    bad = (rng.uniform(size=200) < np.linspace(1.0, 0.3, 200)).astype(int)
    (below,) = np.nonzero(np.cumsum(bad) / np.arange(1, 201) < 0.9)
    expected = int(below[0]) + 1 if len(below) else None
    accumulated = environments.SolvedRule()
    for episode in range(1, 201):
      total = float(bad[:episode].sum())
      accumulated.add_episode(episode, {"total_bad_episodes": total})
      accumulated.add_episode(episode, {"coverage": 1.0})
    counted = _solved(environments.SolvedRule(), bad)
    assert accumulated.solved_episode == counted == expected


def test_luck_before_the_first_update_solves_nothing():
  rule = environments.SolvedRule()
  good, bad = ({"bad_episode": x, "denoised_return": 1 - x} for x in (0.0, 1.0))
  for episode, metrics in enumerate([good, good, bad, bad], start=1):
    rule.add_episode(episode, metrics, has_learnt=episode > 3)
    assert (rule.solved_episode is None) == (episode <= 3)
  assert (rule.solved_episode, rule.treasure_episode) == (4, 4)
  assert rule.treasure_rate == 0.5


def test_solved_rule_by_name():
  assert environments.solved_rule("bsuite:deep_sea/0").threshold == 0.9
  stochastic = environments.solved_rule("bsuite:deep_sea_stochastic/3")
  assert _solved(stochastic, [0] * 120) == 100
  stochastic = environments.solved_rule("bsuite:deep_sea_stochastic/3")
  assert _solved(stochastic, [1] * 96 + [0] * 25) == 121
  assert environments.solved_rule("jax:deep_sea/7").threshold == 0.9
  twin = environments.solved_rule("jax:deep_sea/7,stochastic=true")
  assert (twin.threshold, twin.min_episode) == (0.8, 100)
  assert twin.best_rate == pytest.approx((6 / 7) ** 6)
  assert environments.solved_rule("bsuite:catch/0") is None
  assert environments.solved_rule("jax:chain/20") is None
  assert environments.solved_rule("gym:CartPole-v1") is None


def test_groups_are_bsuites():
  groups = bsuite_sweeps.groups()
  for name in ("SWEEP", "TESTING", "DEEP_SEA", "MNIST_SCALE", "UMBRELLA_LENGTH"):
    assert groups[name] == getattr(sweep, name)
  assert groups["memory"] == sweep.TAGS["memory"]
  assert len(groups) == 2 + 23 + len(sweep.TAGS)


def test_mnist_shows_the_pixels_of_its_files(tmp_path, monkeypatch):
  """Image i has the pixels i, 255 and, elsewhere, 0; its label is i modulo 10."""
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(tmp_path))
  images = np.zeros((50, 28, 28), np.uint8)
  images[:, 0, 0] = np.arange(50)
  images[:, 5, 7] = 255
  labels = (np.arange(50) % 10).astype(np.uint8)
  content = struct.pack(">IIII", 2051, *images.shape) + images.tobytes()
  (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
  with pytest.raises(ValueError, match="train-labels"):
    environments.make("bsuite:mnist/0", seed=3)
  content = struct.pack(">II", 2049, len(labels)) + labels.tobytes()
  (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
  environment = environments.make("bsuite:mnist_scale/0", seed=3)
  seen = set()
  for _ in range(100):
    observation = environment.reset().observation
    assert observation[5, 7] == 1.0  # bsuite's own loader would make it -1/255.
    assert observation.min() == 0.0
    image = round(float(observation[0, 0]) * 255)
    seen.add(image)
    reward = environment.step(image % 10).reward
    assert reward == pytest.approx(sweep.SETTINGS["mnist_scale/0"]["reward_scale"])
  assert len(seen) > 30
