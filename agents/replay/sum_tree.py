"""A sum tree: proportional sampling from many priorities in logarithmic time."""

import numpy as np


class SumTree:
  """Non-negative values in the leaves of a binary tree, sums above.

  Attributes:
    nodes: float64: the root at 1, the leaves in the last half.
  """

  def __init__(self, capacity: int):
    self._leaves = 1 << max(0, int(capacity - 1).bit_length())
    self.nodes = np.zeros(2 * self._leaves, np.float64)

  @property
  def total(self) -> float:
    """The sum of all values."""
    return float(self.nodes[1])

  def set(self, indices: np.ndarray, values: np.ndarray) -> None:
    """Sets the leaves at `indices` (the last value of a repeated one counts)."""
    if not (np.all(np.isfinite(values)) and np.all(values >= 0)):
      raise ValueError(
        f"priorities must be finite and not negative, but the worst is "
        f"{values[~(np.isfinite(values) & (values >= 0))][0]}."
      )
    nodes = indices + self._leaves
    self.nodes[nodes] = values
    while nodes[0] > 1:
      nodes = np.unique(nodes // 2)
      self.nodes[nodes] = self.nodes[2 * nodes] + self.nodes[2 * nodes + 1]

  def sample(self, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws leaves in proportion to their values, of which one is not 0.

    Args:
      uniforms: `[B]`, in [0, 1).

    Returns:
      int64 leaf indices `[B]`, and float32 probabilities `[B]`.
    """
    total = self.nodes[1]
    nodes = np.ones(len(uniforms), np.int64)
    rest = uniforms * total
    while nodes[0] < self._leaves:
      left = 2 * nodes
      mass = self.nodes[left]
      # A right child with sum 0 is never entered, despite rounding.
      go_right = (rest >= mass) & (self.nodes[left + 1] > 0)
      rest = np.where(go_right, rest - mass, rest)
      nodes = left + go_right
    return nodes - self._leaves, (self.nodes[nodes] / total).astype(np.float32)
