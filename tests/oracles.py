"""References of the tests, in numpy's float64: plain loops and printed formulas."""

import math

import numpy as np


def h(z, eps=1e-3):
  """The value transformation of R2D2."""
  return np.sign(z) * (np.sqrt(np.abs(z) + 1) - 1) + eps * z


def h_inv(x, eps=1e-3):
  """Its inverse."""
  root = np.sqrt(1 + 4 * eps * (np.abs(x) + 1 + eps))
  return np.sign(x) * (((root - 1) / (2 * eps)) ** 2 - 1)


def softmax(logits):
  """Probabilities of logits `[N]`."""
  weights = np.exp(np.asarray(logits, np.float64) - np.max(logits))
  return weights / weights.sum()


def project(atoms, values, probs):
  """C51's projection: each value's mass is split between its two neighbours."""
  width = atoms[1] - atoms[0]
  projected = np.zeros(len(atoms))
  for value, prob in zip(values, probs, strict=True):
    place = (np.clip(value, atoms[0], atoms[-1]) - atoms[0]) / width
    low = min(int(np.floor(place)), len(atoms) - 2)
    projected[low] += prob * (low + 1 - place)
    projected[low + 1] += prob * (place - low)
  return projected


def sigmoid(z):
  return 1 / (1 + np.exp(-z))


def lstm_step(of_input, w_h, hidden, cell):
  """(h, c) after a step of an LSTM; `of_input` is w x + b of the four gates."""
  i, g, f, o = np.split(of_input + hidden @ w_h, 4, axis=-1)
  cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(g)
  return sigmoid(o) * np.tanh(cell), cell


class EpisodicNovelty:
  """Algorithm 1 of Never Give Up, line by line, in Python floats."""

  def __init__(self, capacity, k=10, eps=1e-4, xi=8e-3, c=1e-3, s_max=8.0):
    self.capacity, self.k, self.eps, self.xi = capacity, k, eps, xi
    self.c, self.s_max = c, s_max
    self.memory = []
    self.all_distances = []

  def reset(self):
    self.memory = []

  def __call__(self, embedding):
    embedding = [float(x) for x in embedding]
    distances = sorted(
      sum((a - b) ** 2 for a, b in zip(other, embedding, strict=True))
      for other in self.memory
    )[: self.k]
    self.all_distances += distances
    self.memory = [*self.memory, embedding][-self.capacity :]
    if not distances:
      return 0.0
    mean = sum(self.all_distances) / len(self.all_distances)
    total = 0.0
    for distance in distances:
      normalised = distance / mean if mean > 0 else 0.0
      normalised = max(normalised - self.xi, 0.0)
      total += self.eps / (normalised + self.eps)
    similarity = math.sqrt(total * self.k / len(distances)) + self.c
    return 0.0 if similarity > self.s_max else 1.0 / similarity
