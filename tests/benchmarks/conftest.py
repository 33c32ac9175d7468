"""Benchmarks are scripts beside each other: how tests load them."""

import importlib.util
import pathlib
import sys
import types
from collections.abc import Callable

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"


def _load(name: str) -> types.ModuleType:
  spec = importlib.util.spec_from_file_location(
    f"tested_benchmarks_{name}", FOLDER / f"{name}.py"
  )
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  # As for a script; last, since `losses` is there as well.
  sys.path.append(str(FOLDER))
  try:
    spec.loader.exec_module(module)
  finally:
    sys.path.remove(str(FOLDER))
  return module


@pytest.fixture(scope="session")
def load() -> Callable[[str], types.ModuleType]:
  """(name) → a module of benchmarks/."""
  return _load
