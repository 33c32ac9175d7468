"""Formulas of docstrings, which are plain text with Greek letters, as LaTeX.

A docstring writes `G_{t-1} = r_t + γ_t Σ_a π(a) q_t(a)`: indices as in LaTeX, powers as
² or ⁻¹, means as Q̄, roots as sqrt(...). A name of one letter is a variable; a longer
one is a function if it is known here, and a word of text if not. `tm1` is t − 1.
"""

import re

FUNCTIONS = ("KL", "argmax", "exp", "log", "max", "mean", "min", "sign", "softmax")
FUNCTIONS += ("tanh", "trace")
POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SYMBOLS = {
  "Σ": r"\sum ",
  "Π": r"\prod ",
  "...": r"\ldots ",
  "←": r"\leftarrow ",
  "·": r"\cdot ",
  "⊙": r"\odot ",
  "‖": r"\|",
  "−": "-",
  "*": "^{*}",
  "ᵀ": r"^{\top}",
  "{": r"\{",
  "}": r"\}",
  "⟨": r"\sqrt{",  # What `_with_roots` writes.
  "⟩": "}",
}
TOKENS = re.compile(
  "(?P<bar>[A-Za-zα-ω])\u0304"
  "|(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)"
  "|(?P<mark>[_^])(?:{(?P<group>[^{}]*(?:{[^{}]*})?[^{}]*)}"
  "|(?P<names>[A-Za-zα-ω0-9]+(?:(?<!\\^.)_[A-Za-z]+)*))"
  "|(?P<symbol>" + "|".join(map(re.escape, SYMBOLS)) + ")"
  "|(?P<code>[a-z]{3,}_[a-z_]{2,})"
  "|(?P<words>[A-Za-z]{2,}(?: (?:a|[A-Za-z]{2,}))*(?![A-Za-z_(^])(?: (?! ))?)"
  "|(?P<word>[A-Za-zα-ωΑ-Ω]+)"
  "|(?P<comma>,?) {2,}"
)


def _with_roots(text: str) -> str:
  """`sqrt(x)` and `√|x|` as ⟨x⟩."""
  text = re.sub(r"√(\|[^|]+\|)", r"⟨\1⟩", text)
  while "sqrt(" in text:
    start = text.index("sqrt(")
    depth, end = 1, start + len("sqrt(")
    while depth:
      depth += {"(": 1, ")": -1}.get(text[end], 0)
      end += 1
    text = f"{text[:start]}⟨{text[start + 5 : end - 1].strip()}⟩{text[end:]}"
  return text


def _name(name: str) -> str:
  if name in FUNCTIONS:
    return rf"\operatorname{{{name}}}"
  if name == "E":
    return r"\mathbb{E}"
  # Letters next to a Greek one are factors: `γP`.
  return " ".join(name) if len(name) == 1 or not name.isascii() else f"\\text{{{name}}}"


def _token(match: re.Match) -> str:
  groups = match.groupdict()
  if groups["bar"]:
    return rf"\bar{{{groups['bar']}}}"
  if groups["power"]:
    return f"^{{{groups['power'].translate(POWERS)}}}"
  if groups["group"]:
    return f"{groups['mark']}{{{_line(groups['group'])}}}"
  if groups["names"]:
    parts = groups["names"].split("_")
    script = ", ".join("t-1" if part == "tm1" else _name(part) for part in parts)
    return f"{groups['mark']}{{{script}}}"
  if groups["symbol"]:
    return SYMBOLS[groups["symbol"]]
  if groups["code"]:
    return rf"\text{{{groups['code']}}}"
  if groups["words"] and groups["words"].strip() not in FUNCTIONS:
    return rf"\text{{ {groups['words']}}}"
  if groups["words"] or groups["word"]:
    return _name((groups["words"] or groups["word"]).strip())
  return rf"{groups['comma']}\quad "


def _line(text: str) -> str:
  return TOKENS.sub(_token, text.strip())


def to_latex(lines: list[str]) -> str:
  """The lines of a formula; those of several are aligned at their first relation."""
  rows = []
  for line in _with_roots("\n".join(lines)).split("\n"):
    row = _line(line)
    relation = re.search(r"=|\\leftarrow", row)
    if relation is None:  # The line before continues here.
      rows.append(rf"& \quad {row}")
    else:
      rows.append(f"{row[: relation.start()]}& {row[relation.start() :]}")
  if len(rows) == 1:
    return rows[0].replace(r"& \quad ", "").replace("& ", "")
  return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"
