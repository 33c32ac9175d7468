"""The names of a sweep: agents, bsuite's ids, environments."""

import pytest
from bsuite import sweep

from explorax.environments import atari_environments
from explorax.experiments import errors, grid


@pytest.mark.parametrize(
  ("names", "ids"),
  [
    ("SWEEP", [x for x in sweep.SWEEP if not x.startswith("mnist")]),  # No files.
    ("Memory", sweep.TAGS["memory"]),
    ("bandit/1, catch/0,bandit/1", ("bandit/1", "catch/0")),
    ("deep_sea/4,exploration", ("deep_sea/4", *sweep.TAGS["exploration"])),
  ],
)
def test_names_stand_for_bsuites_ids(names, ids, monkeypatch, tmp_path):
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(tmp_path))
  envs = [f"bsuite:{bsuite_id}" for bsuite_id in dict.fromkeys(ids)]
  assert grid.environments(names, None) == envs


def test_unknown_names_are_refused_with_a_suggestion():
  for name, suggestion in (("deep_see", "deep_sea"), ("deep_sea/21", "deep_sea/20")):
    with pytest.raises(errors.SetUpError, match=suggestion):
      grid.environments(f"catch/0,{name}", None)


def test_commas_within_a_profile_or_a_value_separate_nothing():
  envs = "atari:Pong/ngu,noops=3, gym:A-v1,my_module.sub:make,gym:A-v1"
  assert grid.environments("catch/0", envs) == [
    "bsuite:catch/0",
    "atari:Pong/ngu,noops=3",
    "gym:A-v1",
    "my_module.sub:make",
  ]
  rule = "tdu@exploration=EzGreedy(Linear(1,end=0,steps=9),of=Thompson())"
  names = [rule, "dqn@hidden_sizes=8,8", "qu", "my.agents:make"]
  assert grid.agents(", ".join([*names, "qu"])) == names


def test_groups_of_atari_games():
  def games(envs):
    return grid.environments(None, envs)

  everything = games("atari57")
  assert len(everything) == 57 and set(everything) < set(atari_environments.names())
  # Bellemare et al. (2016), table 1; without Freeway: Badia et al. (2020), table 1.
  names = ["Gravitar", "MontezumaRevenge", "Pitfall", "PrivateEye", "Solaris"]
  hard = [f"atari:{name}" for name in [*names, "Venture"]]
  assert games("atari57_hard_exploration") == hard
  assert games("gym:A-v1, atari57_sparse_reward/ngu,sticky=0.25 ,atari:Pong") == [
    "gym:A-v1",
    "atari:Freeway/ngu,sticky=0.25",
    *(f"{env}/ngu,sticky=0.25" for env in hard),
    "atari:Pong",
  ]
  assert games("atari:Pong/ngu,sticky=0.25,atari57_hard_exploration")[1:] == hard
  with pytest.raises(errors.SetUpError, match="atari57_sparse_reward"):
    games("atari:Pong,atari57_sparse_rewards")
