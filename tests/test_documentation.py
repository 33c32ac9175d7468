"""The pages: their code runs, their tables are complete, their links lead somewhere.

Blocks of shell are expanded by a shell in which `python` is a function that prints its
arguments, which the commands' own parsers then read; some runs are made through the
real `main`, shortened by `SHORTER`. Files that pages write (`# name.py`) are there.
"""

import ast
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments, exploration, losses
from explorax.agents.bonuses import types as bonus_types
from explorax.experiments import (
  config,
  evaluate,
  export,
  flag_table,
  job,
  overrides,
  presets,
  report,
  run,
  sweep,
)
from explorax.experiments.runners import core, user_agents
from explorax.experiments.sweeps import grid, selection
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
  """An empty directory with the files that the pages write (`# name.py`)."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  for page in PAGES:
    for block in _blocks(page, "python"):
      if name := re.match(r"# (\w+\.py)\n", block):
        assert not (tmp_path / name[1]).exists(), f"two pages write {name[1]}"
        (tmp_path / name[1]).write_text(block, encoding="utf-8")
  return tmp_path


def _parse_run(argv: list[str]) -> None:
  given = flag_table.parse(config.flags(), argv)
  if not (given["list_agents"] or given["list_envs"] or given["help"]):
    job.resolve(config.from_flags(given))


def _parse_sweep(argv: list[str]) -> None:
  given = {**flag_table.parse(sweep.FLAGS, argv), "workers": None}
  names = selection.agents(given["agents"]), selection.environments(given)
  assert grid.configs(given, *names, given["output"])


def _parse_figure(argv: list[str]) -> None:
  given = flag_table.parse(reproduce.FLAGS, argv)
  if given["figure"] and given["figure"] != "NAME":
    for figure in registry.choose(given["figure"]):
      overrides.apply(figure.config, given["set"])


PARSERS: dict[str, Callable[[list[str]], Any]] = {
  "run": _parse_run,
  "sweep": _parse_sweep,
  "reproduce": _parse_figure,
  "report": lambda argv: flag_table.parse(report.FLAGS, argv, words="runs"),
  "export": lambda argv: flag_table.parse(export.FLAGS, argv, words="runs"),
  "evaluate": lambda argv: flag_table.parse(evaluate.FLAGS, argv, words="files"),
}


@needs_bash
@with_commands
def test_commands_ask_for_what_there_is(path, directory_of_files):
  """Known flags, agents, settings, values, ids and figures."""
  for name, argv in _all_commands(path):
    PARSERS[name](argv)


@every_page
def test_commands_in_the_text_ask_for_what_there_is(path, directory_of_files):
  inline = r"`python -m explorax\.experiments\.(\w+) ([^`]+)`"
  for name, argv in re.findall(inline, path.read_text(encoding="utf-8")):
    PARSERS[name](shlex.split(argv))


@needs_bash
def test_pages_have_commands_of_every_kind():
  found = {name for path in PAGES for name, _ in _all_commands(path)}
  assert found == {*PARSERS}


@pytest.mark.parametrize("path", [*DOCS.glob("papers/[a-z]*.md")], ids=_name)
def test_pages_of_papers_have_all_their_parts(path):
  parts = ("Equations and where they are", "Presets", "Commands", "Readings")
  for part in (*parts, "Measured", "What did not hold"):
    assert _section(path, f"## {part}").strip()
  assert re.search(r"!\[.+\]\(\.\./figures/\w+\.png\)", _section(path, "## Measured"))
  assert _blocks(path, "bash")


@needs_bash
@with_commands
def test_reports_are_of_sweeps_of_the_page(path):
  sweeps = [flag_table.parse(sweep.FLAGS, argv) for argv in _commands(path, "sweep")]
  reports = {argv[0] for argv in _commands(path, "report")}
  assert reports <= {"runs", *(given["output"] for given in sweeps)}


@needs_bash
@pytest.mark.parametrize(
  ("page", "chosen"),
  [
    ("README.md", "--env=my_environments:frozen_lake"),
    ("docs/guides/environments.md", "--env=my_corridor:make"),
    ("docs/guides/runs.md", "--seed=1"),
    ("docs/guides/rules.md", "my_rules"),
    ("docs/guides/bonuses.md", "my_bonuses"),
    ("docs/guides/targets.md", "my_targets"),
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
  _check_files(pathlib.Path("here"), config.parse(argv))


def _check_files(directory: pathlib.Path, asked: config.RunConfig) -> None:
  """The page of a run's files names what there is, and no more."""
  page = (GUIDES / "run_files.md").read_text(encoding="utf-8")
  named = [row[0].strip("`/") for row in _rows(page)]
  if not asked.env.startswith("bsuite:"):
    named.remove("bsuite")
  for name, there in (("evaluation.csv", asked.evaluates), ("videos", asked.video)):
    assert f"`{name}`" in page
    named += [name] if there else []
  found = {name: [*directory.glob(name)] for name in named}
  assert all(len(paths) == 1 for paths in found.values()), found
  tops = {name.split("/")[0] for name in named}
  there = {path.name for path in directory.iterdir()}
  assert len(tops) == len(there)


def test_default_output_is_as_described():
  where = config.default_output("AGENT", "ENV", 0).replace("seed0", "seedSEED")
  assert f"`{where}`" in (GUIDES / "run_files.md").read_text(encoding="utf-8")


def test_example_of_an_agent_of_a_sweep_learns_to_catch(directory_of_files):
  name, env = "my_agents:tabular_q", "bsuite:catch/0"
  environment = environments.make(env, seed=0)
  returns = []
  user_agents.run(
    user_agents.make(name, environments.spec(environment), 0),
    environment,
    config.RunConfig(agent=name, env=env, episodes=2000),
    core.Hooks(on_episode=lambda episode: returns.append(episode.episode_return)),
  )
  assert np.sum(returns[:17]) < 0 < np.sum(returns[-300:])


@pytest.mark.parametrize(
  ("page", "heading", "groups"),
  [
    ("runs", "## Flags", config.flags()),
    ("sweeps", "## Flags", sweep.OWN_FLAGS),
    ("comparing", "## Flags", report.FLAGS),
    ("figures", "## Flags", reproduce.FLAGS),
  ],
)
def test_tables_of_flags_list_them(page, heading, groups):
  rows = _rows(_section(GUIDES / f"{page}.md", heading))
  listed = [name for row in rows for name in re.findall(r"`--(\w+)`", row[0])]
  flags = [flag.name for group in groups.values() for flag in group]
  assert sorted(listed) == sorted(flags)


def test_loss_example_has_a_gradient():
  names = _execute(_python_block(GUIDES / "functions.md", "losses.retrace"))
  gradient = names["gradient"]
  assert gradient.shape == names["q_tm1"].shape
  # One action is taken at each time, and it alone has a gradient.
  taken = jax.nn.one_hot(names["a_tm1"], names["A"])
  np.testing.assert_array_equal(gradient != 0, taken.astype(bool))
  assert jnp.isfinite(names["value"])


def test_short_loss_example_ends_with_a_one_step_error():
  names = _execute(_python_block(README, "losses.retrace"))
  td, policy = names["td"], jax.nn.softmax(names["q_t"][-1])
  last = 1 + 0.99 * policy @ names["q_t"][-1] - names["q_tm1"][-1, 0]
  assert td.shape == (10,)
  np.testing.assert_allclose(td[-1], last, rtol=1e-5)


def test_bonus_example_is_what_it_says():
  names = _execute(_python_block(GUIDES / "bonuses.md", "class Disagreement"))
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


@pytest.mark.parametrize(
  ("page", "containing"),
  [
    ("agents", "EzGreedy"),
    ("agents", "import my_linear_agent"),
  ],
)
def test_agents_made_in_python_learn(page, containing, directory_of_files):
  names = _execute(_python_block(GUIDES / f"{page}.md", containing))
  assert names["result"].episodes["learner_updates"][-1] > 50
  assert not names["result"].interrupted


def test_table_of_agents_is_that_of_the_presets():
  rows = _rows((DOCS / "agents.md").read_text(encoding="utf-8").split("\n## ")[0])
  told = [(row[0].strip("`"), row[1], row[2]) for row in rows]
  known = [(p.name, p.summary, p.paper) for p in presets.PRESETS.values()]
  assert told == known, "docs/agents.md's table differs from experiments/presets"
  assert all(row[3] for row in rows), "say what was measured, or 'not measured'"


def test_readme_names_agents_that_there_are_and_is_short():
  named = [row[1] for row in _rows(_section(README, "## The agents"))]
  assert {*re.findall(r"`(\w+)`", " ".join(named))} <= {*presets.PRESETS}
  assert len(README.read_text(encoding="utf-8").split()) <= 1500


@pytest.mark.parametrize("module", [losses, exploration], ids=lambda m: m.__name__)
def test_public_names_are_listed(module):
  section = _section(GUIDES / "functions.md", f"## {module.__name__}")
  assert sorted(re.findall(r"`(\w+)`", section)) == sorted(module.__all__)


def test_table_of_extras_lists_them():
  rows = _rows(_section(DOCS / "installation.md", "## Extras"))
  listed = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
  project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
  assert sorted(listed) == sorted(
    tomllib.loads(project)["project"]["optional-dependencies"]
  )


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


@with_python
def test_python_blocks_are_python(path):
  for block in _blocks(path, "python"):
    ast.parse(block)
