"""The pages: their code runs, and their links lead somewhere.

Blocks of shell are expanded by a shell in which `python` is a function that prints its
arguments, which the commands' own parsers then read. Files that pages write
(`# name.py`) are there: their agents are traced in their environments.
"""

import ast
import importlib.util
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
  parts,
  report,
  run,
  sweep,
  tuning,
)
from explorax.papers import figures, reproduce

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [
  ROOT / "README.md",
  ROOT / "CONTRIBUTING.md",
  *sorted((ROOT / "docs").rglob("*.md")),
  *sorted(ROOT.glob("agents/*/README.md")),
]


def _name(path: pathlib.Path) -> str:
  return str(path.relative_to(ROOT))


def _blocks(path: pathlib.Path, language: str) -> list[str]:
  text = path.read_text(encoding="utf-8")
  return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _with(language: str) -> pytest.MarkDecorator:
  """Parametrises by the pages with such blocks."""
  pages = [path for path in PAGES if _blocks(path, language)]
  return pytest.mark.parametrize("path", pages, ids=_name)


def _anchors(path: pathlib.Path) -> set[str]:
  """Of a file's headings."""
  headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


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


def _run(argv: list[str], trace: Callable[[Any], tuple[Any, ...]]) -> None:
  given = flags.parse(argv, config.RunConfig, run.Flags, command.Common)
  if any(given[name] for name in ("list_agents", "list_envs", "list_settings", "help")):
    return
  settings, _ = parts.resolve(config.from_flags(given))
  is_theirs = "my_" in f"{settings.env} {settings.settings}"
  if is_theirs and not settings.has_user_agent:
    with parts.opened(settings) as made:
      before, after, *_ = trace(made.agent)
      assert before == after


def _sweep(argv: list[str]) -> None:
  given = flags.parse(argv, sweep.Flags, config.RunConfig, command.Common)
  given["workers"] = None
  agents = grid.agents(given["agents"])
  envs = grid.environments(given["sweep"], given["envs"])
  tried, given["set"] = tuning.split(given["set"], agents)
  agents = tuning.variants(tried, agents) if tried else agents
  assert grid.configs(given, agents, envs, pathlib.Path(given["output"]))


def _reproduce(argv: list[str]) -> None:
  given = flags.parse(argv, reproduce.Flags, command.Common)
  if given["figure"] and given["figure"] != "NAME":
    for figure in figures.choose(given["figure"], figures.every()):
      figures.parse_changes(figure, given["set"])


# Command → its module, and what it calls its arguments without a flag.
OTHERS = {"report": (report, "runs"), "evaluate": (evaluate, "files")}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@_with("bash")
def test_commands_have_valid_flags_and_values(path, directory_of_files, trace):
  """Known flags, agents, settings, values, ids and figures."""
  for name, argv in _commands(path):
    if name == "run":
      _run(argv, trace)
    elif name == "sweep":
      _sweep(argv)
    elif name == "reproduce":
      _reproduce(argv)
    else:
      module, positional = OTHERS[name]
      flags.parse(argv, module.Flags, command.Common, positional=positional)


@pytest.mark.parametrize("path", PAGES, ids=_name)
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


# Packages of pages that our environments lack.
NOT_INSTALLED = ("gymnax", "optuna", "stable_baselines3")
# It reads runs of a day each.
READS_RUNS = 'pathlib.Path(run) / "summary.json"'


@_with("python")
def test_python_blocks_run_as_written(path, directory_of_files):
  """One after the other, as a reader does, but for a shorter training."""

  def shorter(length: re.Match[str]) -> str:
    most = 5 if length[1] == "episodes" else 100  # Mostly before the first update.
    return f"{length[1]}={min(int(length[2]), most)}"

  names: dict[str, Any] = {"__name__": "__main__"}
  for block in _blocks(path, "python"):
    ast.parse(block)
    imported = re.findall(r"^ *(?:import|from) (\w+)", block, re.MULTILINE)
    missing = {*imported} & {*NOT_INSTALLED}
    if READS_RUNS in block or any(not importlib.util.find_spec(x) for x in missing):
      continue
    block = re.sub(r"\b(episodes|steps)=(\d+)", shorter, block)
    exec(compile(block, str(path), "exec"), names)
