"""The pages: their code runs, their tables are complete, their links lead somewhere.

Blocks of shell are expanded by a shell in which `python` is a function that prints its
arguments, which the commands' own parsers then read; some runs are made through the
real `main`, shortened by `SHORTER`. Files that pages write (`# name.py`) are there.
"""

import ast
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from explorax.experiments import (
  command,
  config,
  evaluate,
  flags,
  grid,
  presets,
  report,
  run,
  sweep,
  tuning,
)
from explorax.experiments import parts as parts_lib
from explorax.papers import figures, reproduce

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [
  ROOT / "README.md",
  ROOT / "CONTRIBUTING.md",
  *sorted(DOCS.rglob("*.md")),
  *sorted(ROOT.glob("agents/*/README.md")),
]

# Later flags win. Two episodes, and a replay small enough for learning to begin within
# them.
SHORTER = (
  "--replay=memory",
  "--episodes=2",
  "--set=batch_size=4",
  "--set=min_replay_size=4",
)

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def _name(path: pathlib.Path) -> str:
  return str(path.relative_to(ROOT))


def _blocks(path: pathlib.Path, language: str) -> list[str]:
  text = path.read_text(encoding="utf-8")
  return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


every_page = pytest.mark.parametrize("path", PAGES, ids=_name)
with_commands = pytest.mark.parametrize(
  "path", [path for path in PAGES if _blocks(path, "bash")], ids=_name
)
with_python = pytest.mark.parametrize(
  "path", [path for path in PAGES if _blocks(path, "python")], ids=_name
)


def _anchors(path: pathlib.Path) -> set[str]:
  """Of a file's headings."""
  headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _rows(text: str) -> list[list[str]]:
  """The cells of a table's rows, its header and rule left out."""
  lines = [line for line in text.splitlines() if line.startswith("|")]
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _commands(path: pathlib.Path) -> list[tuple[str, list[str]]]:
  """The name and the arguments of every `python -m explorax.experiments.NAME`."""
  lines = []
  for block in _blocks(path, "bash"):
    # Whatever else stands there (make, pip) is not for a test to do.
    kept = re.sub(r"^(make|pip|source|git|cd)\b.*$", "", block, flags=re.MULTILINE)
    note = "python() { printf '%s\\0' \"$@\"; printf '\\n'; }\n"
    done = subprocess.run(
      ["bash", "-euc", note + kept], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block}\n{done.stderr}"
    lines += [line.rstrip("\0").split("\0") for line in done.stdout.splitlines()]
  commands = []
  for line in lines:
    if line[0] == "-m":
      package, _, name = line[1].rpartition(".")
      assert package in ("explorax.experiments", "explorax.papers"), line
      commands.append((name, line[2:]))
    else:
      assert (ROOT / line[0]).is_file(), line
  return commands


@pytest.fixture
def directory_of_files(tmp_path, monkeypatch):
  """A directory with the files that the pages write (`# name.py`) and tables to try."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / "papers").symlink_to(ROOT / "papers")
  (tmp_path / "results").mkdir()
  for name in ("bsuite", "figures"):
    (tmp_path / "results" / name).symlink_to(ROOT / "results" / name)
  for page in PAGES:
    for block in _blocks(page, "python"):
      if name := re.match(r"# (\w+\.py)\n", block):
        assert not (tmp_path / name[1]).exists(), f"two pages write {name[1]}"
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
  return tmp_path


def _flags_of_run(argv: list[str]) -> dict[str, Any]:
  return flags.parse(argv, config.RunConfig, run.Flags, command.Common)


def _parse_run(argv: list[str]) -> None:
  given = _flags_of_run(argv)
  # A file is of a run that is not there.
  others = ("list_agents", "list_envs", "list_settings", "help", "config")
  if not any(given[name] for name in others):
    parts_lib.resolve(config.from_flags(given))


def _parse_sweep(argv: list[str]) -> None:
  parsed = flags.parse(argv, sweep.Flags, config.RunConfig, command.Common)
  given = {**parsed, "workers": None}
  agents = grid.agents(given["agents"])
  envs = grid.environments(given["sweep"], given["envs"])
  tried, given["set"] = tuning.from_flags(given, agents)
  agents = tuning.variants(tried, agents) if tried else agents
  assert grid.configs(given, agents, envs, pathlib.Path(given["output"]))


def _parse_figure(argv: list[str]) -> None:
  given = flags.parse(argv, reproduce.Flags, command.Common)
  if given["figure"] and given["figure"] != "NAME":
    for figure in figures.choose(given["figure"], figures.every()):
      figures.parse_changes(figure, given["set"])


PARSERS: dict[str, Callable[[list[str]], Any]] = {
  "run": _parse_run,
  "sweep": _parse_sweep,
  "reproduce": _parse_figure,
  "report": lambda argv: flags.parse(
    argv, report.Flags, command.Common, positional="runs"
  ),
  "evaluate": lambda argv: flags.parse(
    argv, evaluate.Flags, command.Common, positional="files"
  ),
}


@needs_bash
@with_commands
def test_commands_have_valid_flags_and_values(path, directory_of_files):
  """Known flags, agents, settings, values, ids and figures."""
  for name, argv in _commands(path):
    PARSERS[name](argv)


@needs_bash
@pytest.mark.parametrize(
  ("page", "chosen"),
  [
    ("docs/guides/environments.md", "--env=my_corridor:make"),
    ("docs/guides/parts.md", "my_rules"),
    ("docs/guides/parts.md", "my_bonuses"),
    ("docs/guides/parts.md", "my_targets"),
  ],
)
def test_commands_of_the_pages_run(page, chosen, directory_of_files, capsys):
  (argv,) = [
    argv
    for name, argv in _commands(ROOT / page)
    if name == "run" and any(chosen in arg for arg in argv)
  ]
  # The device runner has a replay of its own, and may end some episodes later.
  is_on_device = "--runner=device" in argv
  shorter = [*argv, *SHORTER[is_on_device:], "--output=here"]
  assert run.main(shorter) == 0, capsys.readouterr().err
  summary = json.loads(pathlib.Path("here/summary.json").read_text())
  assert summary["status"] == "finished" and summary["learner_updates"] > 0
  assert summary["episodes"] >= 2 if is_on_device else summary["episodes"] == 2


def test_table_of_agents_is_that_of_the_presets():
  rows = _rows((DOCS / "agents.md").read_text(encoding="utf-8").split("\n## ")[0])
  told = [(row[0].strip("`"), *row[1:3]) for row in rows]
  known = [(p.name, p.summary, p.paper) for p in presets.PRESETS.values()]
  assert told == known, "docs/agents.md's table differs from experiments/presets"


@every_page
def test_links_and_paths_exist(path):
  text = path.read_text(encoding="utf-8")
  for link in re.findall(r"\]\(([^)]+)\)", text):
    if link.startswith("https://"):
      continue
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    assert target.exists(), link
    assert not anchor or anchor in _anchors(target), link
  folders = (
    "losses|exploration|networks|environments|agents|experiments|papers|benchmarks"
  )
  for name in re.findall(rf"`((?:{folders}|requirements)/[\w./]*)`", text):
    assert (ROOT / name).exists(), name
  for name in re.findall(r"`make (\w+)`", text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


# Packages of pages that our environments lack.
NOT_INSTALLED = ("gymnax", "optuna", "stable_baselines3")
# It reads runs of a day each.
READS_RUNS = 'pathlib.Path(run) / "summary.json"'


@with_python
def test_python_blocks_run_as_written(path, directory_of_files):
  """One after the other, as a reader does, but for a shorter training."""

  def shorter(length: re.Match[str]) -> str:
    return f"{length[1]}={min(int(length[2]), 20 if length[1] == 'episodes' else 500)}"

  names: dict[str, Any] = {"__name__": "__main__"}
  for block in _blocks(path, "python"):
    ast.parse(block)
    imported = re.findall(r"^ *(?:import|from) (\w+)", block, re.MULTILINE)
    missing = {*imported} & {*NOT_INSTALLED}
    if READS_RUNS in block or any(not importlib.util.find_spec(x) for x in missing):
      continue
    block = re.sub(r"\b(episodes|steps)=(\d+)", shorter, block)
    exec(compile(block, str(path), "exec"), names)
