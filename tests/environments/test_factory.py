"""Environments by name, and those of the user's own modules."""

import sys
import textwrap

import numpy as np
import pytest

from explorax import environments
from explorax.environments import errors

MODULE = """
  import dm_env
  import gymnasium
  import numpy as np
  import fakes

  number = 3
  seeds = []

  def make_dm():
    return fakes.FakeEnvironment(num_actions=4)

  def make_seeded(size=2, seed=None):
    seeds.append(seed)
    return fakes.FakeEnvironment(observation_shape=(size,))

  def make_gym():
    return gymnasium.make("CartPole-v1")

  class Own(fakes.FakeEnvironment):
    pass

  def make_needy(size):
    return fakes.FakeEnvironment(observation_shape=(size,))

  def make_nothing():
    return None

  def make_broken():
    raise RuntimeError("of the user's own")

  class make_specless(fakes.FakeEnvironment):
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
  monkeypatch.syspath_prepend(tmp_path)
  yield
  for name in [n for n in sys.modules if n.partition(".")[0] == "userpackage"]:
    del sys.modules[name]


def test_functions_and_classes_of_the_users_own():
  dm = environments.make("userpackage.envs:make_dm", seed=0)
  assert dm.action_spec().num_values == 4
  assert environments.wrap(dm, seed=0) is dm
  by_class = environments.make("userpackage.envs:Own", seed=0)
  assert type(by_class.raw).__name__ == "Own"
  cart_pole = environments.make("userpackage.envs:make_gym", seed=1)
  ours = environments.make("gym:CartPole-v1", seed=1)
  np.testing.assert_array_equal(cart_pole.reset().observation, ours.reset().observation)
  seeded = environments.make("userpackage.envs:make_seeded", seed=11)
  assert sys.modules["userpackage.envs"].seeds == [11]
  assert seeded.observation_spec().shape == (2,)
  sized = environments.make("userpackage.envs:make_seeded/size=5", seed=0)
  assert sized.observation_spec().shape == (5,)


@pytest.mark.parametrize(
  ("name", "kind", "message"),
  [
    ("nomodule:make", ValueError, "nomodule"),
    ("bsuit:deep_sea/0", ValueError, "Did you mean bsuite"),
    ("userpackage.envs:make_d", ValueError, "Did you mean make_dm"),
    ("userpackage.envs:number", TypeError, "must be a function"),
    ("userpackage.envs:make_needy", TypeError, "argument: 'size'"),
    ("userpackage.envs:make_needy/size=2,side=3", TypeError, "'side'"),
    ("userpackage.envs:make_nothing", TypeError, "NoneType"),
    ("userpackage.envs:make_continuous", TypeError, "finite set"),
    ("deep_sea/0", ValueError, "Did you mean bsuite:deep_sea/0"),
    ("Pong", ValueError, "Did you mean atari:Pong"),
    (":make", ValueError, "kind:name"),
  ],
)
def test_names_that_make_no_environment_are_refused(name, kind, message):
  with pytest.raises(kind, match=message) as caught:
    environments.make(name, seed=0)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("name", "kind", "place"),
  [
    ("userpackage.envs:make_broken", RuntimeError, "envs.py"),
    ("userpackage.broken:make", ModuleNotFoundError, "broken.py"),
    ("userpackage.envs:make_specless", KeyError, "envs.py"),
  ],
)
def test_errors_of_the_users_own_code_are_python_s(name, kind, place):
  with pytest.raises(kind) as caught:
    environments.make(name, seed=0)
  assert errors.users_line(caught.value).startswith(f"{place}:")


def test_agents_are_evaluated_in_whole_games():
  name = "atari:Pong/dqn,life_loss=true,sticky=0.25"
  whole = "atari:Pong/dqn,life_loss=false,sticky=0.25"
  assert environments.evaluation_name(name) == whole
  for same in ("atari:Pong", "atari:Pong/ngu", "my_games:make", "jax:chain/3"):
    assert environments.evaluation_name(same) == same
