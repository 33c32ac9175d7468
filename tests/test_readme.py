"""The READMEs: their code runs, their tables are complete, their links lead somewhere.

Blocks of Python are executed as they are. Blocks of shell are expanded by a shell in
which `python` is a function that prints its arguments, which the commands' own parsers
then read; two runs are made through the real `main`, shortened by `SHORTER`.
"""

import ast
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration, losses
from explorax.agents.bonuses import types as bonus_types
from explorax.experiments import (
  config,
  flag_table,
  overrides,
  presets,
  report,
  reproduce,
  run,
  sweep,
)
from explorax.experiments.figures import registry
from explorax.experiments.sweeps import (
  agents,
  perform,
  records,
  selection,
  user_agents,
)
from explorax.experiments.tasks import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SWEEPS = ROOT / "docs/bsuite/README.md"
PAPERS = sorted(ROOT.glob("docs/papers/*.md"))
AGENTS = ("dqn", "r2d2", "ngu")
READMES = [README, *(ROOT / f"agents/{name}/README.md" for name in AGENTS)]
every_readme = pytest.mark.parametrize("path", READMES, ids=["readme", *AGENTS])

about_sweeps = pytest.mark.parametrize(
  "path", [README, SWEEPS], ids=["readme", "bsuite"]
)

LEFT_BEHIND = "## What a run leaves behind"

# Later flags win. Without Reverb, two episodes, and a replay small enough for learning
# to begin within them.
SHORTER = (
  "--replay=memory",
  "--episodes=2",
  "--set=batch_size=4",
  "--set=min_replay_size=8",
)

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def _blocks(path: pathlib.Path, language: str) -> list[str]:
  text = path.read_text(encoding="utf-8")
  return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _section(path: pathlib.Path, heading: str) -> str:
  """The text from a heading to the next one of its level or above."""
  level = heading.split()[0]
  _, _, rest = path.read_text(encoding="utf-8").partition(f"\n{heading}\n")
  assert rest, f"{path.name} has no heading {heading!r}"
  return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def _name(path: pathlib.Path) -> str:
  return str(path.relative_to(ROOT))


def _anchors(path: pathlib.Path) -> set[str]:
  """Of a file's headings."""
  headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _rows(text: str) -> list[list[str]]:
  """The cells of a table's rows, its header and rule left out."""
  lines = [line for line in text.splitlines() if line.startswith("|")]
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _commands(path: pathlib.Path, name: str = "run") -> list[list[str]]:
  """The arguments of every `python -m explorax.experiments.NAME` in a file."""
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
  module = ["-m", f"explorax.experiments.{name}"]
  return [line[2:] for line in lines if line[:2] == module]


def _python_block(containing: str) -> str:
  (block,) = [b for b in _blocks(README, "python") if containing in b]
  return block


def _execute(block: str) -> dict[str, Any]:
  # Dataclasses look their module up by name.
  names: dict[str, Any] = {"__name__": "__main__"}
  exec(compile(block, str(README), "exec"), names)
  return names


@pytest.fixture
def directory_of_files(tmp_path, monkeypatch):
  """An empty directory with the files that the README writes (`# name.py`)."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  for block in _blocks(README, "python"):
    if name := re.match(r"# (\w+\.py)\n", block):
      (tmp_path / name[1]).write_text(block, encoding="utf-8")
  return tmp_path


@needs_bash
@pytest.mark.parametrize(
  ("chosen", "is_on_device"),
  [("--env=my_environments:", False), ("--runner=device", True)],
  ids=["an environment of one's own", "the device runner"],
)
def test_commands_of_the_readme_run(chosen, is_on_device, directory_of_files, capsys):
  (argv,) = [
    argv for argv in _commands(README) if any(arg.startswith(chosen) for arg in argv)
  ]
  # The device runner has a replay of its own, and may end some episodes later.
  shorter = [*argv, *SHORTER[is_on_device:], "--output=here"]
  assert run.main(shorter) == 0, capsys.readouterr().err
  summary = json.loads(pathlib.Path("here/summary.json").read_text())
  assert summary["status"] == "finished" and summary["learner_updates"] > 0
  assert summary["episodes"] >= 2 if is_on_device else summary["episodes"] == 2
  _check_files(pathlib.Path("here"), config.parse(argv))


def _check_files(directory: pathlib.Path, asked: config.RunConfig) -> None:
  """The section of what a run leaves behind names what there is, and no more."""
  section = _section(README, LEFT_BEHIND)
  named = [row[0].strip("`/") for row in _rows(section)]
  if not asked.env.startswith("bsuite:"):
    named.remove("bsuite")
  for name, there in (("evaluation.csv", asked.evaluates), ("videos", asked.video)):
    assert f"`{name}`" in section
    named += [name] if there else []
  found = {name: [*directory.glob(name)] for name in named}
  assert all(len(paths) == 1 for paths in found.values()), found
  tops = {name.split("/")[0] for name in named}
  there = {path.name for path in directory.iterdir()}
  assert len(tops) == len(there)


@needs_bash
@every_readme
def test_commands_ask_for_what_there_is(path):
  """The commands that are not run: known flags, agents, settings and values."""
  commands = _commands(path)
  assert len(commands) >= 2
  for argv in commands:
    asked = config.parse(argv)
    assert asked.agent in presets.PRESETS, asked.agent
    preset = presets.PRESETS[asked.agent]
    overrides.apply(preset.config_for(asked.env), asked.settings)


def test_default_output_is_as_described():
  where = config.default_output("AGENT", "ENV", 0).replace("seed0", "seedSEED")
  assert f"`{where}`" in _section(README, LEFT_BEHIND)


@needs_bash
@about_sweeps
def test_sweeps_and_reports_ask_for_what_there_is(path, directory_of_files):
  sweeps = [flag_table.parse(sweep.FLAGS, argv) for argv in _commands(path, "sweep")]
  assert len(sweeps) >= 2
  for given in sweeps:
    assert selection.ids(given["sweep"])
    for agent in given["agents"].split(","):
      assert agents.is_preset(agent) or user_agents.find(agent)
  reports = _commands(path, "report")
  assert reports
  assert {argv[0] for argv in reports} <= {given["output"] for given in sweeps}


def test_agent_example_learns_to_catch(directory_of_files):
  run = records.Run("my_agents:tabular_q", "catch/0", 0)
  settings = records.task(run, {}, 2000, {}).settings
  rows = perform.perform(settings, types.TaskContext())["rows"]
  first, last = rows[12], rows[-1]  # Episodes 17 and 2000.
  late = last["total_return"] - rows[-7]["total_return"]
  assert first["episode"] == 17 and first["total_return"] < 0
  assert late / (last["episode"] - rows[-7]["episode"]) > 0


@pytest.mark.parametrize(
  ("heading", "groups"),
  [
    ("### 2. Sweep agents over bsuite", sweep.FLAGS),
    ("### The report of a sweep", report.FLAGS),
  ],
  ids=["sweep", "report"],
)
def test_tables_of_flags_list_them(heading, groups):
  rows = _rows(_section(README, heading))
  listed = [name for row in rows for name in re.findall(r"`--(\w+)`", row[0])]
  flags = [flag.name for group in groups.values() for flag in group]
  assert sorted(listed) == sorted(flags)


def test_loss_example_has_a_gradient():
  names = _execute(_python_block("losses.retrace"))
  gradient = names["gradient"]
  assert gradient.shape == names["q_tm1"].shape
  # One action is taken at each time, and it alone has a gradient.
  taken = jax.nn.one_hot(names["a_tm1"], names["A"])
  np.testing.assert_array_equal(gradient != 0, taken.astype(bool))
  assert jnp.isfinite(names["value"])


def test_bonus_example_learns_and_is_what_it_says():
  names = _execute(_python_block("class Disagreement"))
  assert names["result"].episodes == 20 and names["result"].learner_updates > 50
  bonus = names["Disagreement"]().build(None, 2)
  q_tm1 = jnp.array([[[1.0, 0.0]], [[0.0, 1.0]], [[2.0, 0.0]]])  # [K, B, A]
  x = jnp.zeros((1, 1))
  inputs = bonus_types.Inputs(
    jnp.zeros((3, 1)),
    jnp.array([0]),
    q_tm1,
    q_tm1,
    x,
    x,
    jnp.ones(1),
    jnp.zeros(1),
    q_tm1,
    x,
  )
  r_int, _ = bonus.compute((), inputs)
  np.testing.assert_allclose(r_int, [1 / 3], rtol=1e-6)


def test_table_of_agents_agrees_with_the_presets():
  rows = _rows(_section(README, "## The agents"))
  told = {(row[0].strip("`"), row[1], row[2]) for row in rows}
  known = {(p.name, p.summary, p.paper) for p in presets.PRESETS.values()}
  assert told <= known, "README.md's table differs from experiments/presets"
  assert all(row[3] for row in rows), "say what was measured, or 'not measured yet'"


@pytest.mark.parametrize("module", [losses, exploration], ids=lambda m: m.__name__)
def test_public_names_are_listed(module):
  section = _section(README, "## Public names")
  lists = section.split(f"`{module.__name__}`:\n", 1)[1].split("\n`explorax.", 1)[0]
  listed = re.findall(r"`(\w+)`", lists)
  assert sorted(listed) == sorted(module.__all__)


def test_table_of_extras_lists_them():
  rows = _rows(_section(README, "## Installing, and machines without Reverb"))
  listed = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
  project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
  assert sorted(listed) == sorted(
    tomllib.loads(project)["project"]["optional-dependencies"]
  )


@pytest.mark.parametrize(
  "path",
  [README, SWEEPS, *PAPERS, *sorted(ROOT.glob("agents/*/README.md"))],
  ids=_name,
)
def test_links_and_paths_exist(path):
  text = path.read_text(encoding="utf-8")
  for link in re.findall(r"\]\(([^)]+)\)", text):
    if link.startswith("https://"):
      continue
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    assert target.exists(), link
    assert not anchor or anchor in _anchors(target), link
  folders = "losses|exploration|networks|environments|agents|experiments|benchmarks"
  for name in re.findall(rf"`((?:{folders}|requirements)/[\w./]*)`", text):
    assert (ROOT / name).exists(), name
  for name in re.findall(r"`make (\w+)`", text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


@needs_bash
@pytest.mark.parametrize("path", [README, *PAPERS], ids=_name)
def test_commands_of_papers_ask_for_what_there_is(path):
  """Runs, figures and sweeps in blocks, and figures within the text."""
  for argv in _commands(path):
    asked = config.parse(argv)
    preset = presets.PRESETS[asked.agent]
    overrides.apply(preset.config_for(asked.env), asked.settings)
  for argv in _commands(path, "sweep"):
    given = flag_table.parse(sweep.FLAGS, argv)
    assert selection.ids(given["sweep"]) and selection.names(given)
  inline = re.findall(
    r"`python -m explorax.experiments.reproduce ([^`]*)`", path.read_text()
  )
  for argv in [*_commands(path, "reproduce"), *map(shlex.split, inline)]:
    given = flag_table.parse(reproduce.FLAGS, argv)
    if given["figure"] and given["figure"] != "NAME":
      for figure in registry.choose(given["figure"]):
        overrides.apply(figure.config, given["set"])


@every_readme
def test_python_blocks_are_python(path):
  for block in _blocks(path, "python"):
    ast.parse(block)
