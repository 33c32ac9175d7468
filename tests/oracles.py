"""References of the tests, in numpy's float64: plain loops and printed formulas."""

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
