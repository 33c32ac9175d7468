"""Formulas as MathML, which browsers draw without a script and without a network."""

from docutils import nodes
from docutils.utils.math import latex2mathml, unichar2tex
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def _mathml(node: nodes.Node, as_block: bool) -> str:
  latex = node.astext().translate(unichar2tex.uni2tex_table)
  try:
    drawn = latex2mathml.tex2mathml(latex, as_block=as_block)
  except latex2mathml.MathError as error:
    LOGGER.warning("The formula '%s' is not drawn: %s", latex, error, location=node)
    return f"<code>{node.astext()}</code>"
  # Chromium lays an accent into its letter where no font has measures for it.
  return drawn.replace('<mover accent="true">', "<mover>")


def _visit_inline(translator, node: nodes.math) -> None:
  translator.body.append(_mathml(node, as_block=False))
  raise nodes.SkipNode


def _visit_block(translator, node: nodes.math_block) -> None:
  translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>\n')
  raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
  app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
  app.config.html_math_renderer = "mathml"
  return {"parallel_read_safe": True, "parallel_write_safe": True}
