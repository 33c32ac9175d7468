"""How ε changes over a run, and which schedules are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.exploration import schedules

pytestmark = pytest.mark.ops


@pytest.mark.parametrize(
  ("env_steps", "expected"),
  [(0, 1.0), (25, 0.775), (50, 0.55), (100, 0.1), (10**9, 0.1)],
)
def test_epsilon_falls_linearly_and_stays(env_steps, expected):
  epsilon = schedules.linear_epsilon(1.0, 0.1, 100, jnp.int32(env_steps))
  np.testing.assert_allclose(epsilon, expected, rtol=1e-6)
  jitted = jax.jit(lambda steps: schedules.linear_epsilon(1.0, 0.1, 100, steps))
  np.testing.assert_allclose(jitted(env_steps), expected, rtol=1e-6)


def test_a_fixed_epsilon_is_fixed():
  assert schedules.linear_epsilon(0.3, None, 0, jnp.int32(10**6)) == 0.3


@pytest.mark.parametrize("parameters", [(0.0,), (1.0,), (0.1, 1.0, 5), (1.0, 0.0, 1)])
def test_good_schedules_pass(parameters):
  schedules.check_epsilon("Rule", *parameters)


@pytest.mark.parametrize(
  ("parameters", "message"),
  [
    ((1.5,), "Rule.epsilon is 1.5"),
    ((-0.1,), "Rule.epsilon is -0.1"),
    ((float("nan"),), "Rule.epsilon is nan"),
    ((1.0, 2.0, 10), "Rule.final_epsilon is 2.0"),
    ((1.0, 0.1, -1), "decay_steps is -1 environment steps"),
    ((1.0, 0.1, 0), "final_epsilon=0.1 and decay_steps=0; a schedule needs both"),
    ((1.0, None, 10), "final_epsilon=None and decay_steps=10; a schedule needs both"),
    ((1.0, None, 0, -1.0), "Rule.ladder is -1.0"),
    ((1.0, None, 0, float("inf")), "Rule.ladder is inf"),
  ],
)
def test_bad_schedules_are_refused(parameters, message):
  with pytest.raises(ValueError, match=message):
    schedules.check_epsilon("Rule", *parameters)
