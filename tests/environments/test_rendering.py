"""Pictures of environments, drawn by themselves or from their observations."""

import dm_env
import fakes
import numpy as np
import pytest

from explorax import environments
from explorax.environments import rendering, standard

gymnasium = pytest.importorskip("gymnasium")


def picture_of(environment: dm_env.Environment) -> np.ndarray | None:
  environment = standard.StandardEnvironment(environment)
  return rendering.picture(environment, environment.reset())


def test_a_one_hot_matrix_is_white_where_the_agent_is():
  drawn = picture_of(fakes.FakeEnvironment(observation_shape=(5, 5), one_hot=True))
  assert drawn.sum() == 3 * 255 and drawn[0, 0].tolist() == [255] * 3
  assert picture_of(fakes.fake()) is None


def test_an_image_observation_is_its_picture():
  environment = environments.make("jax:breakout", seed=0)
  timestep = environment.reset()
  drawn = rendering._of_observation(
    environment.observation_spec(), timestep.observation
  )
  np.testing.assert_array_equal(drawn[..., 1], timestep.observation[..., -1])


class Box(gymnasium.Env):
  """A gymnasium environment that can draw itself."""

  metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)

  def __init__(self, render_mode: str | None = None):
    self.render_mode = render_mode

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return np.zeros(3, np.float32), {}

  def step(self, action):
    return np.zeros(3, np.float32), 0.0, True, False, {}

  def render(self):
    return np.full((8, 9, 3), 7, np.uint8)


def plain():
  """One that takes no render mode at all."""
  return Box()


@pytest.fixture
def registered(monkeypatch):
  registry = gymnasium.envs.registration.registry
  for name, make in (("ExploraxBox-v0", Box), ("ExploraxPlain-v0", plain)):
    spec = gymnasium.envs.registration.EnvSpec(name, entry_point=make)
    monkeypatch.setitem(registry, name, spec)


def test_gymnasium_draws_where_it_is_asked_to(registered):
  environment = rendering.make("gym:ExploraxBox-v0", seed=0)
  drawn = rendering.picture(environment, environment.reset())
  assert drawn.shape == (8, 9, 3) and (drawn == 7).all()
  plain = environments.make("gym:ExploraxBox-v0", seed=0)
  assert rendering.picture(plain, plain.reset()) is None
  rendering.check("gym:ExploraxBox-v0", seed=0)
  environment = rendering.make("gym:ExploraxPlain-v0", seed=0)
  assert environment.reset().first()
  with pytest.raises(ValueError, match="'gym:ExploraxPlain-v0' has no picture"):
    rendering.check("gym:ExploraxPlain-v0", seed=0)


@pytest.mark.parametrize("wrong", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), ""])
def test_other_arrays_are_no_pictures(wrong):
  with pytest.raises(ValueError, match=r"render\(\)"):
    environment = fakes.fake()
    environment.render = lambda: wrong
    picture_of(environment)
