"""Docstrings as they are written here, made into what Sphinx reads.

- A block of four more spaces before the first section is a formula, or code if it has
  a string in double quotes or an import.
- Words in backticks are code. Elsewhere `*`, `|` and a closing `_` are themselves.
- The settings of a dataclass are shown as its source has them, comments included, since
  those tell units and sources.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import typing

import formulas
from sphinx.util import docutils as sphinx_docutils

SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")
KEPT = r"`[^`]*`|^ *\* "  # Code, and the mark of a list's item.
MARKUP = re.compile(rf"({KEPT})(\w?)|([*|\\]|_\b(?![A-Za-z0-9{{]))", re.MULTILINE)


def _blocks(lines: list[str]):
  """(whether it is a formula or code, lines), in turn."""
  block, formula, section, blank = [], False, False, True
  for line in lines:
    indent = len(line) - len(line.lstrip())
    if line.strip():
      if not indent:
        section = bool(SECTION.match(line))
      starts = indent >= 4 and blank and not section
      if (starts and not formula) or (formula and indent < 4):
        yield formula, block
        block, formula = [], starts
    blank = not line.strip()
    block.append(line)
  yield formula, block


def _escaped(lines: list[str]) -> list[str]:
  text = "\n".join(lines)

  def escape(match: re.Match) -> str:
    kept, after, mark = match.groups()
    if mark:
      return "\\" + mark
    return f"{kept}\\ {after}" if after and kept.endswith("`") else kept + after

  return MARKUP.sub(escape, text).split("\n")


def _display(lines: list[str]) -> list[str]:
  text = textwrap.dedent("\n".join(lines)).strip("\n")
  if '"' in text or "import " in text:
    return _code(lines, 0, len(lines))
  out = []
  for part in re.split(r"\n\s*\n", text):
    out += ["", ".. math::", "", "   " + formulas.to_latex(part.split("\n")), ""]
  return out


def _code(source: list[str], begin: int, end: int) -> list[str]:
  code = textwrap.dedent("\n".join(source[begin:end])).strip("\n").split("\n")
  return ["", ".. code-block:: python", "", *("   " + line for line in code), ""]


def _settings(cls: type) -> list[str]:
  """The source of a dataclass's fields, or nothing where it adds none."""
  source = textwrap.dedent(inspect.getsource(cls)).split("\n")
  body = ast.parse("\n".join(source)).body[0].body
  fields = [node for node in body if isinstance(node, ast.AnnAssign)]
  return _code(source, body[0].end_lineno, fields[-1].end_lineno) if fields else []


def _constant(module, name: str) -> list[str]:
  """The source of a constant, with the comment above it."""
  source = inspect.getsource(module).split("\n")
  for node in ast.parse("\n".join(source)).body:
    if isinstance(node, ast.Assign) and node.targets[0].id == name:
      begin = node.lineno - 1
      while source[begin - 1].startswith("#"):
        begin -= 1
      return _code(source, begin, node.end_lineno)
  raise ValueError(f"{module.__name__} does not assign {name}.")


def _shows_settings(what: str, thing) -> bool:
  documented = "Attributes:" in (inspect.getdoc(thing) or "")
  return what == "class" and dataclasses.is_dataclass(thing) and not documented


def _process(app, what, name, thing, options, lines: list[str]) -> None:
  del app, name, options
  out = []
  for formula, block in _blocks(list(lines)):
    out += _display(block) if formula else _escaped(block)
  if _shows_settings(what, thing):
    out += _settings(thing)
  if what == "property":
    out = ["", *out]  # Else Napoleon takes what is before a colon for a type.
  lines[:] = out


def _signature(app, what, name, thing, options, signature, returns):
  """None for a protocol, nor for a dataclass whose many settings are shown below it."""
  del app, name, options
  hidden = getattr(thing, "_is_protocol", False) or (
    _shows_settings(what, thing) and len(signature or "") > 80
  )
  return ("" if hidden else signature), returns


def _skips(app, what, name, thing, skip, options) -> bool | None:
  """Without the fields of named tuples, which their docstrings describe."""
  del app, what, name, options
  return True if type(thing).__name__ == "_tuplegetter" else None


class Package(sphinx_docutils.SphinxDirective):
  """A package's public names, in a section for each of its modules.

  They are those of its `__all__`, or of all of its modules where it has none. Modules
  that are `:without:` are left out.
  """

  required_arguments = 1
  option_spec: typing.ClassVar = {"without": str.split}

  def run(self) -> list:
    package = importlib.import_module(self.arguments[0])
    paths = [
      f"{package.__name__}.{info.name}"
      for info in pkgutil.iter_modules(package.__path__)
      if info.name not in self.options.get("without", ())
    ]
    text = [f".. automodule:: {package.__name__}", ""]
    if hasattr(package, "__all__"):
      text += _named(package, paths)
    else:
      for path in paths:
        text += _section(path, "members")
    return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)


def _named(package, paths: list[str]) -> list[str]:
  """The names of `__all__`: a summary, then the sections of their modules."""
  # This imports their modules, and no others, which may need an extra.
  things = {name: getattr(package, name) for name in package.__all__}
  summary, sections = [], []
  for path in paths:
    module = sys.modules.get(path)
    names = [name for name, thing in things.items() if _is_of(module, name, thing)]
    if names:
      # A function may have the name of its module: only the function is indexed.
      sections += _section(path, "no-index")
      summary += [f"   {name}" for name in names if _kind(things[name]) != "data"]
    for name in names:
      sections += _entry(package, module, name)
  head = [f".. currentmodule:: {package.__name__}", "", ".. autosummary::"]
  return [*head, "   :nosignatures:", "", *summary, "", *sections]


def _is_of(module, name: str, thing) -> bool:
  if module is None:
    return False
  if _kind(thing) == "data":
    return name in vars(module) and f"\n{name} = " in inspect.getsource(module)
  return thing.__module__ == module.__name__


def _section(path: str, option: str) -> list[str]:
  title = path.rpartition(".")[2]
  return ["", title, "-" * len(title), "", f".. automodule:: {path}", f"   :{option}:"]


def _entry(package, module, name: str) -> list[str]:
  kind = _kind(getattr(package, name))
  if kind == "data":
    code = ["   " + line for line in _constant(module, name)]
    return ["", f".. py:data:: {name}", f"   :module: {package.__name__}", *code]
  members = ["   :members:"] if kind == "class" else []
  return ["", f".. auto{kind}:: {package.__name__}.{name}", *members]


def _kind(thing) -> str:
  if inspect.isclass(thing):
    return "class"
  return "function" if inspect.isroutine(thing) else "data"


def setup(app) -> dict[str, bool]:
  app.setup_extension("sphinx.ext.autodoc")
  app.connect("autodoc-process-docstring", _process, priority=400)  # Before Napoleon.
  app.connect("autodoc-process-signature", _signature)
  app.connect("autodoc-skip-member", _skips)
  app.add_directive("package", Package)
  return {"parallel_read_safe": True, "parallel_write_safe": True}
