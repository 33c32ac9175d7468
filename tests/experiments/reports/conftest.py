"""bsuite's stored logs, and directories of runs."""

import csv
import io
import itertools
import json
import pathlib
import tarfile

import numpy as np
import pytest
from bsuite import sweep as bsuite_sweep

from explorax.environments import bsuite_sweeps
from explorax.experiments import output
from explorax.experiments.recording import rows

DATA = pathlib.Path(__file__).parent / "data"
RNG = np.random.default_rng(0)


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
  """Set → experiment → id → log."""
  found = {}
  content = (DATA / "logs.tar.gz").read_bytes()
  with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
    for member in archive.getmembers():
      name, file = member.name.split("/")
      bsuite_id = next(
        i for i in bsuite_sweep.SWEEP if bsuite_sweeps.csv_name(i) == file
      )
      path = tmp_path_factory.mktemp("log") / file
      path.write_bytes(archive.extractfile(member).read())
      experiment = bsuite_id.partition("/")[0]
      found.setdefault(name, {}).setdefault(experiment, {})[bsuite_id] = rows.read(path)
  return found


@pytest.fixture(scope="session")
def read_tables():
  """Reads the tables of a report.md: the title of each → its rows, column → text."""

  def read(path):
    found = {}
    blocks = (path / "report.md").read_text(encoding="utf-8").split("\n\n")
    for title, block in itertools.pairwise(blocks):
      if block.startswith("| "):
        header, _, *rows = [
          [cell.strip(" `") for cell in line[1:-1].split("|")]
          for line in block.strip().splitlines()
        ]
        found[title.strip("*")] = [dict(zip(header, row, strict=True)) for row in rows]
    return found

  return read


@pytest.fixture
def write_run(tmp_path, monkeypatch, make_episode, make_evaluation):
  """Writes a run of 40 episodes with these returns, ten steps each.

  `evaluations` has the returns at each step, and `metrics` columns of the episodes.
  """
  monkeypatch.chdir(tmp_path)

  def write(
    path,
    agent="dqn",
    env="gym:CartPole-v1",
    seed=0,
    returns=None,
    evaluations=None,
    metrics=None,
    **given,
  ):
    directory = output.RunDirectory(tmp_path / path)
    settings = [f"{name}={value}" for name, value in given.items()]
    record = {"agent": agent, "env": env, "seed": seed, "settings": settings}
    directory.write_json("config.json", {**record, "config": given})
    table = rows.CsvFile(directory.path / rows.METRICS)
    for i, value in enumerate(RNG.normal(size=40) if returns is None else returns):
      of_episode = {name: column[i] for name, column in (metrics or {}).items()}
      table(make_episode(i + 1, episode_return=float(value), metrics=of_episode))
    table.close()
    if evaluations is not None:
      table = rows.CsvFile(directory.path / rows.EVALUATION)
      for steps, values in evaluations.items():
        for episode in make_evaluation(steps, values).episodes:
          table(episode)
      table.close()
    return directory.path

  return write


@pytest.fixture(scope="session")
def write_sweep():
  """Writes the directories of runs on bsuite with only bsuite's logs.

  Called with (path, done): done is (agent, id, seed) → log, where an agent may have
  settings.
  """

  def write(path, done):
    for (agent, bsuite_id, seed), log in done.items():
      name = f"{agent}/{bsuite_id.replace('/', '-')}/seed{seed}".replace(":", ".")
      folder = path / name
      (folder / "bsuite").mkdir(parents=True)
      preset, *settings = agent.split("@")
      record = {"agent": preset, "env": f"bsuite:{bsuite_id}", "seed": seed}
      record |= {"settings": settings, "versions": {"git_commit": "0123abc"}}
      (folder / "config.json").write_text(json.dumps(record))
      (folder / "summary.json").write_text(json.dumps({"status": "finished"}))
      with open(folder / "bsuite" / bsuite_sweeps.csv_name(bsuite_id), "w") as file:
        csv.writer(file).writerows([log, *zip(*log.values(), strict=True)])
    return path

  return write
