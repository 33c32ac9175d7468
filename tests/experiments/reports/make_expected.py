"""Makes `data/logs.tar.gz` and `data/expected.json`: bsuite's scores of bsuite's logs.

    python tests/experiments/reports/make_expected.py

It needs the extra `plots` on Python 3.11, whose versions of pandas and plotnine are old
enough for bsuite's own scores. The logs are those of bsuite's logger, on bsuite's
environments; those of mnist show random images, since its data are not here. The agent
cheats now and then, on each id as often as chance would have it, so that scores lie
between 0 and 1. Run twice, it writes the same.

`long` has ids of all experiments, with as many episodes as are quick, mnist's and
bandit's being all; `short` has few, and ids that end before others.
"""

import gzip
import importlib.metadata
import io
import json
import math
import pathlib
import platform
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bsuite import bsuite, sweep
from bsuite.experiments import summary_analysis
from bsuite.logging import csv_load, csv_logging
from bsuite.utils import datasets

from explorax.environments import bsuite_environments

DATA = pathlib.Path(__file__).parent / "data"
COMMAND = "python tests/experiments/reports/make_expected.py"
PACKAGES = ("bsuite", "pandas", "plotnine", "numpy", "matplotlib")

# Kind → the episodes of `long`.
EPISODES = {
  "bandit": 10_000,
  "mnist": 10_000,
  "catch": 2000,
  "cartpole": 40,
  "mountain_car": 40,
  "cartpole_swingup": 40,
  "deep_sea": 1400,
  "deep_sea_stochastic": 1400,
  "discounting_chain": 200,
  "memory_len": 200,
  "memory_size": 600,
  "umbrella_length": 200,
  "umbrella_distract": 200,
}
SHORT = 25  # Episodes.
# Id → the episode in which the agent begins to cheat, at all times: after 2^N + 100 in
# the first of each two, and before it in the other.
LATE = {
  "deep_sea/0": 1000,
  "deep_sea/3": 300,
  "deep_sea_stochastic/0": 1000,
  "deep_sea_stochastic/3": 300,
}
SHORT_OF_STOCHASTIC = 170  # Its score begins at the hundredth.


def main() -> None:
  images = np.random.RandomState(0).randint(256, size=(100, 28, 28)).astype(np.uint8)
  labels = np.arange(100) % 10
  datasets.load_mnist = lambda *_: ((images, labels), (images, labels))
  with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for name, bsuite_id, episodes in runs():
      log(bsuite_id, episodes, root / name)
    (DATA / "logs.tar.gz").write_bytes(pack(root))
    paths = {name: str(root / name) for name in ("long", "short")}
    frame, by = csv_load.load_bsuite(paths)
  scores = summary_analysis.bsuite_score(frame, by)
  tags = summary_analysis.ave_score_by_tag(scores, by)
  expected = {
    "command": COMMAND,
    "versions": {
      "python": platform.python_version(),
      **{name: importlib.metadata.version(name) for name in PACKAGES},
    },
    "scores": table(scores, "bsuite_env"),
    "tags": table(tags, "tag"),
    "tags_of": {
      name: list(info.tags) for name, info in summary_analysis.BSUITE_INFO.items()
    },
  }
  text = json.dumps(expected, indent=1, sort_keys=True, allow_nan=False)
  (DATA / "expected.json").write_text(text + "\n", encoding="utf-8")


def runs() -> Iterator[tuple[str, str, int]]:
  """(set, id, episodes) of all logs."""
  for experiment in summary_analysis.BSUITE_INFO:
    ids = [i for i in sweep.SWEEP if i.partition("/")[0] == experiment]
    variant = experiment.endswith(("_noise", "_scale"))
    kind = experiment.removesuffix("_noise").removesuffix("_scale")
    for bsuite_id in ids[:1] + ids[3:17:4] + ids[17:19] if variant else ids[::3]:
      yield "long", bsuite_id, EPISODES[kind]
    for number, bsuite_id in enumerate(ids[:9:4]):
      short = SHORT_OF_STOCHASTIC if kind == "deep_sea_stochastic" else SHORT
      yield "short", bsuite_id, short if number else short // 3


def log(bsuite_id: str, episodes: int, folder: pathlib.Path) -> None:
  """Runs an agent that cheats in a share of the episodes; bsuite logs it."""
  raw = bsuite.load(bsuite_id.partition("/")[0], sweep.SETTINGS[bsuite_id])
  seed = sweep.SWEEP.index(bsuite_id)
  bsuite_environments.reseed(raw, seed)
  environment = csv_logging.wrap_environment(raw, bsuite_id, str(folder))
  inner = raw
  while hasattr(inner, "_env"):
    inner = inner._env
  rng = np.random.default_rng(seed)
  cheat = cheats(bsuite_id.partition("/")[0])
  share = rng.random() ** 2
  num_actions = raw.action_spec().num_values
  begin = LATE.get(bsuite_id, 0)
  share = 1.0 if begin else share
  # Poles fall in mid-episode where the agent slips often enough.
  slip = rng.random() if bsuite_id.startswith("cartpole") else 0.0
  for episode in range(episodes):
    timestep = environment.reset()
    cheating = episode >= begin and rng.random() < share
    while not timestep.last():
      good = cheating and rng.random() >= slip
      action = cheat(inner, timestep) if good else rng.integers(num_actions)
      timestep = environment.step(int(action))


def cheats(experiment: str) -> Callable[[Any, Any], Any]:
  """A good policy of (environment, timestep), which may look into the environment."""
  kind = experiment.removesuffix("_noise").removesuffix("_scale")
  return {
    "bandit": lambda env, _: np.argmax(env._rewards),
    "mnist": lambda env, _: env._correct_label,
    "catch": lambda env, _: 1 + np.sign(env._ball_x - env._paddle_x),
    "cartpole": balance,
    "mountain_car": lambda env, step: 2 if step.observation[0, 1] >= 0 else 0,
    "cartpole_swingup": swing_up,
    "deep_sea": lambda env, _: env._action_mapping[env._row, env._column],
    "deep_sea_stochastic": lambda env, _: env._action_mapping[env._row, env._column],
    "discounting_chain": lambda env, _: np.argmax(env._rewards),
    "memory_len": lambda env, _: env._context[env._query],
    "memory_size": lambda env, _: env._context[env._query],
    "umbrella_length": lambda env, _: env._need_umbrella,
    "umbrella_distract": lambda env, _: env._need_umbrella,
  }[kind]


def balance(env: Any, _: Any) -> int:
  """Pushes under the pole."""
  state = env._state
  angle = math.remainder(state.theta, 2 * math.pi)
  lean = angle + 0.3 * state.theta_dot + 0.05 * state.x + 0.1 * state.x_dot
  return 1 + int(np.sign(lean))


def swing_up(env: Any, timestep: Any) -> int:
  """Gives the pole the energy that it has upright, and then balances."""
  state = env._state
  if math.cos(state.theta) > 0.9 and abs(state.theta_dot) < 3:
    return balance(env, timestep)
  energy = state.theta_dot**2 / (2 * 14.7) + math.cos(state.theta) - 1
  if abs(state.x) > 1.5:
    return 1 - int(np.sign(state.x))
  if energy > 0:
    return 1
  return 1 - int(np.sign(state.theta_dot * math.cos(state.theta)) or 1)


def pack(root: pathlib.Path) -> bytes:
  """The folder as a tar.gz that is the same each time."""
  tar = io.BytesIO()
  with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for path in sorted(root.rglob("*.csv")):
      content = path.read_bytes()
      info = tarfile.TarInfo(path.relative_to(root).as_posix())
      info.size = len(content)
      archive.addfile(info, io.BytesIO(content))
  return gzip.compress(tar.getvalue(), compresslevel=9, mtime=0)


def table(frame: Any, column: str) -> dict[str, dict[str, float | None]]:
  """Set → name → score; None for NaN."""
  result: dict[str, dict[str, float | None]] = {}
  for _, row in frame.iterrows():
    value = None if math.isnan(row["score"]) else float(row["score"])
    result.setdefault(row["agent_name"], {})[row[column]] = value
  return result


if __name__ == "__main__":
  main()
