"""Names, the user's own environments, and the list for people."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from explorax import environments

MODULE = """
  import dm_env
  import gymnasium
  import numpy as np
  from explorax.environments import testing

  number = 3
  seeds = []

  def make_dm():
    return testing.FakeEnvironment(num_actions=4)

  def make_seeded(size=2, seed=None):
    seeds.append(seed)
    return testing.FakeEnvironment(observation_shape=(size,))

  def make_gym():
    return gymnasium.make("CartPole-v1")

  class Own(testing.FakeEnvironment):
    pass

  def make_needy(size):
    return testing.FakeEnvironment(observation_shape=(size,))

  def make_nothing():
    return None

  def make_broken():
    raise RuntimeError("of the user's own")

  def make_exit():
    raise SystemExit(3)

  class make_specless(testing.FakeEnvironment):
    def action_spec(self):
      return {}["actions"]

  def make_continuous():
    return gymnasium.make("Pendulum-v1")
"""


@pytest.fixture(autouse=True)
def user_module(tmp_path, monkeypatch):
  """A package of the user's in the current directory, gone again afterwards."""
  package = tmp_path / "userpackage"
  package.mkdir()
  (package / "__init__.py").write_text("")
  (package / "envs.py").write_text(textwrap.dedent(MODULE))
  (package / "broken.py").write_text("import no_such_module_anywhere\n")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
  yield
  for name in [n for n in sys.modules if n.partition(".")[0] == "userpackage"]:
    del sys.modules[name]


def test_functions_and_classes_of_the_users_own():
  dm = environments.make("userpackage.envs:make_dm", seed=0)
  assert dm.action_spec().num_values == 4
  assert environments.wrap(dm, seed=0) is dm
  own = environments.make("userpackage.envs:Own", seed=0)
  assert type(own.raw).__name__ == "Own"
  cart_pole = environments.make("userpackage.envs:make_gym", seed=1)
  ours = environments.make("gym:CartPole-v1", seed=1)
  np.testing.assert_array_equal(cart_pole.reset().observation, ours.reset().observation)
  seeded = environments.make("userpackage.envs:make_seeded", seed=11)
  assert sys.modules["userpackage.envs"].seeds == [11]
  assert seeded.observation_spec().shape == (2,)
  assert sys.path[-1] == os.getcwd() and sys.path.count(os.getcwd()) == 1


@pytest.mark.parametrize(
  ("name", "kind", "message"),
  [
    ("nomodule:make", ValueError, "'nomodule' is neither a kind of environment"),
    ("bsuit:deep_sea/0", ValueError, "did you mean 'bsuite'"),
    ("userpackage.envs:make_d", ValueError, "did you mean 'make_dm'"),
    ("userpackage.envs:zzzzzz", ValueError, "has no function 'zzzzzz'"),
    ("userpackage.envs:number", TypeError, "is of type int; it must be a function"),
    ("userpackage.envs:make_needy", TypeError, r"its signature is \(size\)"),
    ("userpackage.envs:make_nothing", TypeError, "got one of type builtins.NoneType"),
    ("userpackage.envs:make_continuous", TypeError, "discretise continuous actions"),
    ("deep_sea/0", ValueError, "did you mean 'bsuite:deep_sea/0'"),
    ("Pong", ValueError, "did you mean 'atari:Pong'"),
    ("mountain_car", ValueError, "did you mean 'jax:mountain_car'"),
    ("CartPole-v1", ValueError, "did you mean 'gym:CartPole-v1'"),
    ("bsuite:", ValueError, "write 'kind:name'"),
    (":make", ValueError, "write 'kind:name'"),
  ],
)
def test_names_that_make_no_environment_are_refused(name, kind, message):
  with pytest.raises(kind, match=message) as caught:
    environments.make(name, seed=0)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("name", "cause", "message"),
  [
    (
      "userpackage.envs:make_broken",
      RuntimeError,
      "the function .* raised RuntimeError: .* the user's own .envs.py:",
    ),
    (
      "userpackage.broken:make",
      ModuleNotFoundError,
      "the module .* raised ModuleNotFoundError: .*no_such_module_anywhere.*broken.py:",
    ),
    ("userpackage.envs:make_exit", SystemExit, "the function .* raised SystemExit: 3"),
    ("userpackage.envs:make_specless", KeyError, "the environment of .* KeyError"),
  ],
)
def test_errors_of_the_users_own_code_are_one_sentence(name, cause, message):
  with pytest.raises(ValueError, match=message) as caught:
    environments.make(name, seed=0)
  assert isinstance(caught.value.__cause__, cause)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("seed", "kind"), [(-1, ValueError), (1.5, TypeError)])
def test_invalid_seeds_are_refused(seed, kind):
  with pytest.raises(kind, match=f"the seed is {seed}; it must be"):
    environments.make("bsuite:catch/0", seed=seed)


def test_the_list_names_what_can_be_made():
  rows = dict(environments.list_environments())
  assert len(rows) > 25
  assert all(description for description in rows.values())
  deep_sea = rows["bsuite:deep_sea/0 … /20"]
  assert "size 10 … 50" in deep_sea and "10000 episodes" in deep_sea
  assert "exploration" in deep_sea
  assert "/tmp/mnist" in rows["bsuite:mnist/0 … /19"]
  assert "2 actions" in rows["gym:CartPole-v1"]
  assert "any odd size" in rows["jax:disco_maze/<size>"]
  assert "permuted=false" in rows["jax:deep_sea/<size>"]
  assert "variance" in rows["jax:mountain_car"]
  assert "gym:<id>" in rows and "<module>:<function>" in rows


def test_importing_the_package_imports_no_environments():
  code = (
    "import sys; from explorax import environments; "
    "print([m for m in ('bsuite', 'gymnasium', 'pandas', 'jax') if m in sys.modules])"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, check=True
  )
  assert done.stdout.strip() == "[]"


def test_agents_are_evaluated_in_whole_games():
  name = "atari:Pong/dqn,life_loss=true,sticky=0.25"
  whole = "atari:Pong/dqn,life_loss=false,sticky=0.25"
  assert environments.evaluation_name(name) == whole
  for same in ("atari:Pong", "atari:Pong/ngu", "my_games:make", "jax:chain/3"):
    assert environments.evaluation_name(same) == same
