"""The sparse swing-up of dm_control's cart-pole, in JAX."""

import dataclasses
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import jax_types

# dm_control's cartpole.xml, in metres, kilograms and seconds.
TIME_STEP = 0.01
GRAVITY = 9.81
CART_MASS = 1.0
POLE_MASS = 0.1
POLE_LENGTH = 1.0  # A capsule, without its caps; the hinge is at one end.
POLE_RADIUS = 0.045
CART_DAMPING = 5e-4
POLE_DAMPING = 2e-6
GEAR = 10.0  # Newtons for a control of 1.
CONTROLS = (-1.0, 0.0, 1.0)
# The soft ends of the slider: MuJoCo's time constant and damping ratio (solreflimit),
# its default impedance (minimum and maximum), and the depth between them.
SLIDER_END = 1.8
SLIDER_TIME_CONSTANT = 0.08
SLIDER_DAMPING_RATIO = 1.0
IMPEDANCE = (0.9, 0.95, 0.001)
# The region with a reward.
LARGEST_POSITION = 0.25
LEAST_COSINE = 0.995


class State(NamedTuple):
  """The position and velocity of cart and pole.

  Attributes:
    position: float32 `[2]`, the cart's in metres, and the pole's angle θ in radians, 0
      when upright, not wrapped.
    velocity: float32 `[2]`, their derivatives, per second.
    time: int32 `[]`, steps taken.
  """

  position: jax.Array
  velocity: jax.Array
  time: jax.Array


@dataclasses.dataclass(frozen=True)
class CartpoleSwingup(jax_types.Simulation):
  """dm_control's cartpole swingup_sparse, as in paper 1 (Dabney et al., 2021).

  The cart starts in the middle of its slider, the pole hanging (Tassa et al., 2018):
  both positions and both velocities have normal noise of standard deviation 0.01. A
  step of 0.01 s earns 1 if |x| ≤ 0.25 and cos θ ≥ 0.995 after it, else 0; an episode is
  truncated after 1000 steps and never terminates. Observations are
  (x, cos θ, sin θ, dx/dt, dθ/dt), float32 `[5]`, in dm_control's order.

  Actions 0, 1 and 2 push with −10, 0 and 10 newtons, the ends and the middle of
  dm_control's range: the paper does not say how it discretises actions.
  """

  num_actions = len(CONTROLS)

  def default_params(self) -> jax_types.TimeLimit:
    return jax_types.TimeLimit(time_limit=1000)

  def observation_spec(self) -> dm_env.specs.Array:
    return dm_env.specs.Array((5,), np.float32, "position and velocity")

  def begin(self, key: jax.Array, params: jax_types.TimeLimit) -> State:
    noise = 0.01 * jax.random.normal(key, (2, 2), jnp.float32)
    hanging = jnp.asarray([0.0, np.pi], jnp.float32)
    return State(hanging + noise[0], noise[1], jnp.int32(0))

  def advance(
    self, key: jax.Array, state: State, action: jax.Array, params: jax_types.TimeLimit
  ) -> tuple[State, jax.Array, bool]:
    control = jnp.asarray(CONTROLS, jnp.float32)[action]
    position, velocity = integrate(state.position, state.velocity, control)
    upright = jnp.cos(position[1]) >= LEAST_COSINE
    in_reach = jnp.abs(position[0]) <= LARGEST_POSITION
    return State(position, velocity, state.time + 1), upright & in_reach, False

  def observe(self, state: State) -> jax.Array:
    x, angle = state.position
    return jnp.stack([x, jnp.cos(angle), jnp.sin(angle), *state.velocity])


def integrate(
  position: jax.Array, velocity: jax.Array, control: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """The state one time step later, by the classic Runge-Kutta method of fourth order.

  This is the integrator of dm_control's model (RK4). Position (x, θ) and velocity are
  `[2]`, of any floating type; the control in [−1, 1] is constant.
  """
  force = GEAR * control
  h = TIME_STEP
  # The velocity and acceleration at each of the four stages.
  v1, a1 = velocity, acceleration(position, velocity, force)
  v2 = velocity + h / 2 * a1
  a2 = acceleration(position + h / 2 * v1, v2, force)
  v3 = velocity + h / 2 * a2
  a3 = acceleration(position + h / 2 * v2, v3, force)
  v4 = velocity + h * a3
  a4 = acceleration(position + h * v3, v4, force)
  return (
    position + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4),
    velocity + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
  )


def acceleration(
  position: jax.Array, velocity: jax.Array, force: jax.Array
) -> jax.Array:
  """(d²x/dt², d²θ/dt²), `[2]`, of a cart that pulls a pole.

  With the cart's mass M, the pole's mass m, half its length l, its moment of inertia
  J about the hinge, and the coefficients of damping c and d,

    (M + m)·x″ + m·l·cos θ·θ″ = force + m·l·sin θ·θ′² − c·x′ + push,
    m·l·cos θ·x″ + J·θ″ = m·g·l·sin θ − d·θ′,

  where `push` is the force of the slider's ends, 0 between them.
  """
  angle, angular_velocity = position[1], velocity[1]
  lever = POLE_MASS * POLE_LENGTH / 2
  total, coupling, inertia = _masses(jnp.cos(angle))
  determinant = total * inertia - coupling**2
  on_cart = (
    force + lever * jnp.sin(angle) * angular_velocity**2 - CART_DAMPING * velocity[0]
  )
  on_pole = lever * GRAVITY * jnp.sin(angle) - POLE_DAMPING * angular_velocity
  free = (inertia * on_cart - coupling * on_pole) / determinant
  on_cart += _push(position[0], velocity[0], free, inertia / determinant)
  return jnp.stack(
    [
      (inertia * on_cart - coupling * on_pole) / determinant,
      (total * on_pole - coupling * on_cart) / determinant,
    ]
  )


def _masses(cosine: Any) -> tuple[float, Any, float]:
  """The entries of the mass matrix: M + m, m·l·cos θ and J."""
  coupling = POLE_MASS * POLE_LENGTH / 2 * cosine
  return CART_MASS + POLE_MASS, coupling, _pole_inertia()


def _pole_inertia() -> float:
  """The moment of inertia about the hinge of a homogeneous capsule."""
  radius, length = POLE_RADIUS, POLE_LENGTH
  caps = POLE_MASS * 4 * radius / (4 * radius + 3 * length)  # Both half-spheres.
  cylinder = POLE_MASS - caps
  about_middle = cylinder * (3 * radius**2 + length**2) / 12 + caps * (
    2 * radius**2 / 5 + length * (3 * radius + 2 * length) / 8
  )
  return about_middle + POLE_MASS * (length / 2) ** 2


def _push(
  x: jax.Array, speed: jax.Array, free: jax.Array, inverse_mass: jax.Array
) -> jax.Array:
  """The force on the cart beyond the slider's ends: MuJoCo's soft constraint.

  At a depth r beyond the end, moving inwards at v, where the constraint's impedance is
  i(r) and i its greatest, time constant T and damping ratio ζ, the acceleration inwards
  is drawn towards

    reference = −2/(i·T)·v + i(r)/(i·T·ζ)²·r

  by the force max(0, (reference − free)/(w + w₀·(1 − i(r))/i(r))), `free` being the
  acceleration inwards without it, w what the acceleration gains per newton and w₀ the
  same where the pole stands upright (MuJoCo's documentation, "Computation").
  """
  depth = jnp.maximum(jnp.abs(x) - SLIDER_END, 0.0)
  inwards = -jnp.sign(x)
  least, greatest, width = IMPEDANCE
  share = jnp.minimum(depth / width, 1.0)
  share = jnp.where(share < 0.5, 2 * share**2, 1 - 2 * (1 - share) ** 2)
  impedance = least + share * (greatest - least)
  scale = greatest * SLIDER_TIME_CONSTANT
  reference = (
    impedance / (scale * SLIDER_DAMPING_RATIO) ** 2 * depth
    - 2 / scale * inwards * speed
  )
  total, coupling, inertia = _masses(1.0)
  upright = inertia / (total * inertia - coupling**2)
  softness = upright * (1 - impedance) / impedance
  strength = (reference - inwards * free) / (inverse_mass + softness)
  return jnp.where(depth > 0, inwards * jnp.maximum(strength, 0.0), 0.0)
