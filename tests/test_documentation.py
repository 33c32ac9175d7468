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
import shlex
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration, losses
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
from explorax.experiments import settings as settings_lib
from explorax.papers import registry, reproduce

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
GUIDES = DOCS / "guides"
PAGES = [
  README,
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


def _section(path: pathlib.Path, heading: str) -> str:
  """The text from a heading to the next one of its level or above."""
  level = heading.split()[0]
  _, _, rest = path.read_text(encoding="utf-8").partition(f"\n{heading}\n")
  assert rest, f"{path.name} has no heading {heading!r}"
  return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def _anchors(path: pathlib.Path) -> set[str]:
  """Of a file's headings."""
  headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _rows(text: str) -> list[list[str]]:
  """The cells of a table's rows, its header and rule left out."""
  lines = [line for line in text.splitlines() if line.startswith("|")]
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _all_commands(path: pathlib.Path) -> list[tuple[str, list[str]]]:
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
      if package == "explorax.papers.learning":
        continue
      assert package in ("explorax.experiments", "explorax.papers"), line
      commands.append((name, line[2:]))
    else:
      assert (ROOT / line[0]).is_file(), line
  return commands


def _commands(path: pathlib.Path, name: str) -> list[list[str]]:
  return [argv for found, argv in _all_commands(path) if found == name]


def _python_block(path: pathlib.Path, containing: str) -> str:
  (block,) = [b for b in _blocks(path, "python") if containing in b]
  return block


def _execute(block: str) -> dict[str, Any]:
  # Dataclasses look their module up by name.
  names: dict[str, Any] = {"__name__": "__main__"}
  exec(compile(block, "a page", "exec"), names)
  return names


@pytest.fixture
def directory_of_files(tmp_path, monkeypatch):
  """A directory with the files that the pages write (`# name.py`) and tables to try."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / "papers").symlink_to(ROOT / "papers")
  for page in PAGES:
    for block in _blocks(page, "python"):
      if name := re.match(r"# (\w+\.py)\n", block):
        assert not (tmp_path / name[1]).exists(), f"two pages write {name[1]}"
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
  return tmp_path


def _flags_of_run(argv: list[str]) -> dict[str, Any]:
  return flags.parse(
    argv, config.RunConfig, run.Flags, command.Compiling, command.Common
  )


def _parse_run(argv: list[str]) -> None:
  given = _flags_of_run(argv)
  # A file is of a run that is not there.
  others = ("list_agents", "list_envs", "list_settings", "help", "config")
  if not any(given[name] for name in others):
    parts_lib.resolve(config.from_flags(given))


def _parse_sweep(argv: list[str]) -> None:
  given = {
    **flags.parse(argv, sweep.Flags, config.RunConfig, command.Compiling),
    "workers": None,
  }
  agents = grid.agents(given["agents"])
  envs = grid.environments(given["sweep"], given["envs"])
  tried, given["set"] = tuning.from_flags(given, agents)
  agents = tuning.variants(tried, agents) if tried else agents
  assert grid.configs(given, agents, envs, pathlib.Path(given["output"]))


def _parse_figure(argv: list[str]) -> None:
  given = flags.parse(argv, reproduce.Flags, command.Compiling)
  if given["figure"] and given["figure"] != "NAME":
    for figure in registry.choose(given["figure"]):
      settings_lib.apply(figure.config, given["set"])


PARSERS: dict[str, Callable[[list[str]], Any]] = {
  "run": _parse_run,
  "sweep": _parse_sweep,
  "reproduce": _parse_figure,
  "report": lambda argv: flags.parse(
    argv, report.Flags, command.Common, positional="runs"
  ),
  "evaluate": lambda argv: flags.parse(
    argv, evaluate.Flags, command.Compiling, positional="files"
  ),
}


@needs_bash
@with_commands
def test_commands_have_valid_flags_and_values(path, directory_of_files):
  """Known flags, agents, settings, values, ids and figures."""
  for name, argv in _all_commands(path):
    PARSERS[name](argv)


@every_page
def test_commands_in_the_text_have_valid_flags_and_values(path, directory_of_files):
  inline = r"`python -m explorax\.experiments\.(\w+) ([^`]+)`"
  for name, argv in re.findall(inline, path.read_text(encoding="utf-8")):
    PARSERS[name](shlex.split(argv))


@needs_bash
@pytest.mark.parametrize(
  ("page", "chosen"),
  [
    ("docs/guides/environments.md", "--env=my_corridor:make"),
    ("docs/guides/parts.md#an-exploration-rule", "my_rules"),
    ("docs/guides/bonuses.md", "my_bonuses"),
    ("docs/guides/parts.md#a-target", "my_targets"),
  ],
)
def test_commands_of_the_pages_run(page, chosen, directory_of_files, capsys):
  (argv,) = [
    argv for argv in _commands(ROOT / page, "run") if any(chosen in arg for arg in argv)
  ]
  # The device runner has a replay of its own, and may end some episodes later.
  is_on_device = "--runner=device" in argv
  shorter = [*argv, *SHORTER[is_on_device:], "--output=here"]
  assert run.main(shorter) == 0, capsys.readouterr().err
  summary = json.loads(pathlib.Path("here/summary.json").read_text())
  assert summary["status"] == "finished" and summary["learner_updates"] > 0
  assert summary["episodes"] >= 2 if is_on_device else summary["episodes"] == 2
  _check_files(pathlib.Path("here"), config.from_flags(_flags_of_run(argv)))


def _check_files(directory: pathlib.Path, asked: config.RunConfig) -> None:
  """The page of a run's files names what there is, and no more."""
  page = (GUIDES / "run_files.md").read_text(encoding="utf-8")
  named = [row[0].strip("`/") for row in _rows(page.split("\n## ")[0])]
  if not asked.env.startswith("bsuite:"):
    named.remove("bsuite")
  for name, there in (("evaluation.csv", asked.evaluates), ("videos", asked.video)):
    assert f"`{name}`" in page
    named += [name] if there else []
  found = {name: [*directory.glob(name)] for name in named}
  assert all(len(paths) == 1 for paths in found.values()), found
  tops = {name.split("/")[0] for name in named}
  there = {path.name for path in directory.iterdir() if path.name != ".lock"}
  assert len(tops) == len(there)


@pytest.mark.parametrize(
  ("page", "classes"),
  [
    ("runs", (config.RunConfig, run.Flags, command.Compiling, command.Common)),
    ("sweeps", (sweep.Flags,)),
    ("comparing", (report.Flags, command.Common)),
    ("figures", (reproduce.Flags, command.Compiling, command.Common)),
  ],
)
def test_tables_of_flags_list_them(page, classes):
  rows = _rows(_section(GUIDES / f"{page}.md", "## Flags"))
  listed = [name for row in rows for name in re.findall(r"`--(\w+)`", row[0])]
  assert sorted(listed) == sorted(flags.of(*classes))


def test_loss_example_has_a_gradient():
  names = _execute(_python_block(GUIDES / "functions.md", "losses.retrace"))
  gradient = names["gradient"]
  assert gradient.shape == names["q_tm1"].shape
  # One action is taken at each time, and it alone has a gradient.
  taken = jax.nn.one_hot(names["a_tm1"], names["A"])
  np.testing.assert_array_equal(gradient != 0, taken.astype(bool))
  assert jnp.isfinite(names["value"])


def test_agents_made_in_python_learn(directory_of_files):
  names = _execute(_python_block(GUIDES / "agents.md", "import my_linear_agent"))
  assert names["result"].episodes["learner_updates"][-1] > 50
  assert not names["result"].interrupted


class _Trial:
  """Optuna's trial, which suggests the lowest values."""

  def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
    assert low < high and log
    return low

  def suggest_int(self, name: str, low: int, high: int) -> int:
    assert low < high
    return low


class _Study:
  """Optuna's study, of one trial."""

  def optimize(self, objective: Callable[[Any], float], n_trials: int) -> None:
    self.best_params, self.best_value = {}, objective(_Trial())
    assert n_trials > 1


def test_the_search_with_optuna_runs(monkeypatch):
  """With a stand-in for Optuna, which is no dependency; with shorter runs."""
  optuna = types.ModuleType("optuna")
  optuna.Trial = _Trial
  optuna.samplers = types.SimpleNamespace(TPESampler=lambda seed: None)
  optuna.create_study = lambda direction, sampler: _Study()
  monkeypatch.setitem(sys.modules, "optuna", optuna)
  (block,) = _blocks(GUIDES / "optuna.md", "python")
  shorter = block.replace("range(3)", "range(1)").replace("steps=5000", "steps=1100")
  assert shorter.count("1100") == 1 and "range(1)" in shorter
  assert _execute(shorter)["study"].best_value >= 8  # The shortest episode.


def test_trained_agents_are_used_as_written(directory_of_files):
  """The blocks of the page, one after the other; the run is shorter."""
  blocks = _blocks(GUIDES / "policy.md", "python")
  code = "\n".join(blocks).replace("steps=2000", "steps=1100")
  assert "steps=1100" in code
  names = _execute(code)
  assert names["policy"].env == "gym:CartPole-v1"
  assert names["episode_return"] > 5 and names["q"].shape == (2,)
  assert names["actions"].shape == (3,) and names["timestep"].last()


def test_table_of_agents_is_that_of_the_presets():
  rows = _rows((DOCS / "agents.md").read_text(encoding="utf-8").split("\n## ")[0])
  told = [(row[0].strip("`"), row[1]) for row in rows]
  known = [(p.name, f"{p.summary} ({p.paper})") for p in presets.PRESETS.values()]
  assert told == known, "docs/agents.md's table differs from experiments/presets"
  assert all(row[2] for row in rows), "say what was measured, or 'not measured'"


@pytest.mark.parametrize("module", [losses, exploration], ids=lambda m: m.__name__)
def test_public_names_are_listed(module):
  section = _section(GUIDES / "functions.md", f"## {module.__name__}")
  assert sorted(re.findall(r"`(\w+)`", section)) == sorted(module.__all__)


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
