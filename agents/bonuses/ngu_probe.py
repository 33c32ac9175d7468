"""A linear probe: how well the controllable state predicts the true state."""

from typing import Any

import jax
import jax.numpy as jnp

from explorax.agents.bonuses import ngu_states

TARGETS = ngu_states.POSITION
_NUM_CLASSES = 256  # The values of a byte.


def init(embedding_size: int) -> dict[str, jax.Array]:
  """Classifiers with zero weights; the loss is convex."""
  return {
    "w": jnp.zeros((len(TARGETS), embedding_size, _NUM_CLASSES), jnp.float32),
    "b": jnp.zeros((len(TARGETS), _NUM_CLASSES), jnp.float32),
  }


def loss(
  params: dict[str, jax.Array],
  controllable: jax.Array,
  state: jax.Array,
  mask: jax.Array,
) -> tuple[jax.Array, dict[str, jax.Array]]:
  """Cross entropies of x, y and room, each predicted from the embedding.

      p(z | x_t) = softmax(W_z f(x_t) + b_z)

  No gradient passes to f. Badia et al. (2020), appendix I.1, which trains "a linear
  classifier" and gives the squared error of positions and the room's error rate; its
  optimiser is not printed.

  Args:
    params: of `init`.
    controllable: f(x), `[N, D]`.
    state: uint8 `[N, 3]`, x and y (pixels) and the room.
    mask: float32 `[N]`, 1 for the frames that count.

  Returns:
    The sum of the three losses, and metrics: `probe_loss_x`, `_y`, `_room`;
    `probe_accuracy_x`, `_y`, `_room`, the shares of frames whose most probable value
    is the true one; `probe_error_x`, `_y`, by how many pixels it is off (root mean
    square).
  """
  controllable = jax.lax.stop_gradient(controllable)
  logits = jnp.einsum("nd,kdc->nkc", controllable, params["w"]) + params["b"][None]
  target = state.astype(jnp.int32)
  log_probs = jax.nn.log_softmax(logits)
  wrong = -jnp.take_along_axis(log_probs, target[..., None], axis=-1)[..., 0]
  guess = jnp.argmax(logits, axis=-1)

  def mean(x: jax.Array) -> jax.Array:
    """`[N, 3]` → `[3]`, over the frames that count."""
    return jnp.sum(x * mask[:, None], axis=0) / jnp.maximum(jnp.sum(mask), 1.0)

  by_target: dict[str, Any] = {
    "loss": mean(wrong),
    "accuracy": mean((guess == target).astype(jnp.float32)),
    "error": jnp.sqrt(mean(jnp.square(guess - target).astype(jnp.float32))),
  }
  metrics = {
    f"probe_{measure}_{name}": values[i]
    for measure, values in by_target.items()
    for i, name in enumerate(TARGETS)
    if (measure, name) != ("error", "room")  # A room has no error in pixels.
  }
  return jnp.sum(by_target["loss"]), metrics
