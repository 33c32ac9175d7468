"""Paper 1's figure 14: the adversarial DeepSea."""

import numpy as np
import pytest

from explorax.environments import deep_sea
from explorax.experiments.figures import ez_adversarial, ez_domains, types

(FIGURE,) = ez_adversarial.FIGURES


def test_goes_from_tasks_to_a_drawing():
  pytest.importorskip("matplotlib")
  for config in (FIGURE.config, FIGURE.quick):
    names = [task.name for task in FIGURE.tasks(config)]
    assert len(set(names)) == len(names) > 1
  config = ez_adversarial.Config(sizes=(3,), episodes=20, num_seeds=3)
  done = [
    types.Done(t.settings, FIGURE.run(t.settings, lambda share: None), 0.0)
    for t in FIGURE.tasks(config)
  ]
  assert FIGURE.draw(done).axes
  assert all(f.claim and f.measured for f in FIGURE.judge(done))


def test_each_seed_has_effects_of_its_own():
  setup = ez_domains.DeepSea(size=2, episodes=200)
  plain, permuted = (
    setup.learn("epsilon", (0, 64), permuted)["episodes"] for permuted in (False, True)
  )
  # Those positions that can be reached, of two rows.
  right = np.stack([deep_sea.action_mapping(seed, 2) for seed in range(64)])
  same = right[:, [0, 1, 1], [0, 0, 1]].all(axis=1)
  assert 0 < same.sum() < 64
  np.testing.assert_array_equal(permuted[same], plain[same])
  assert (permuted[~same] != plain[~same]).any()
  # Seeds of another range are the same seeds.
  later = setup.learn("epsilon", (60, 64), True)["episodes"]
  np.testing.assert_array_equal(later, permuted[60:])


def verdicts(episodes) -> list[bool | None]:
  config = ez_adversarial.Config(num_seeds=20)

  def results(settings):
    size = settings["setup"]["size"]
    number = min(episodes(settings["rule"], settings["permuted"], size), 20_000)
    found = np.full(20, number < 20_000)
    # Half of the seeds need a few more with one rule, half with the other.
    odd = np.arange(20) % 2 == (settings["rule"] == "ez")
    return {"episodes": np.where(found & odd, number + 1, number), "stopped": found}

  done = [
    types.Done(t.settings, results(t.settings), 0.0) for t in FIGURE.tasks(config)
  ]
  return [f.held for f in FIGURE.judge(done)]


def test_findings():
  def as_the_paper(rule, permuted, size):
    return 10 * size**2 if rule == "ez" and not permuted else 12**size

  def the_other_way(rule, permuted, size):
    return 10 * size**2 if rule == "ez" and permuted else 12**size

  assert verdicts(as_the_paper) == [True] * 3
  assert verdicts(the_other_way) == [False] * 3
  assert verdicts(lambda rule, permuted, size: 10**9) == [None, None, False]


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"sizes": ()}, "sizes is"),
    ({"sizes": (1, 3)}, "sizes has 1"),
    ({"episodes": 0}, "episodes has 0"),
    ({"num_seeds": 0}, "num_seeds has 0"),
  ],
)
def test_impossible_settings_are_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    ez_adversarial.Config(**settings)
