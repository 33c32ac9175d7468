"""Pieces of HTML: one page that needs nothing but itself, and no script."""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: #fff;
  color: #1a1a1a; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid #888; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
nav ul { padding-left: 1.2rem; columns: 16rem; }
a { color: #003f7d; }
.note { border-left: .35rem solid #1a1a1a; background: #f1f1f1; padding: .6rem .9rem;
  max-width: 46rem; }
.scroll { overflow-x: auto; max-width: 100%; margin: .6rem 0; }
.scroll:focus-visible { outline: 2px solid #003f7d; }
table { border-collapse: separate; border-spacing: 0; font-size: .92rem; }
caption { text-align: left; padding-bottom: .3rem; }
caption span { display: block; position: sticky; left: 0;
  max-width: min(46rem, calc(100vw - 2rem)); }
th, td { border: solid #999; border-width: 0 1px 1px 0; padding: .3rem .55rem;
  text-align: left; vertical-align: top; }
thead th { background: #eee; border-top-width: 1px; }
tr > :first-child { border-left-width: 1px; position: sticky; left: 0; }
th[scope="row"] { background: #fff; max-width: 14rem; }
@media (max-width: 40rem) { th[scope="row"] { max-width: 9rem; } }
th small, td small { display: block; font-weight: normal; color: #444; }
td.number { white-space: nowrap; min-width: 8.5rem;
  font-variant-numeric: tabular-nums; }
td.number small { white-space: normal; }
td.text { min-width: 17rem; max-width: 34rem; }
.pictures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
figure { margin: 0; max-width: 36rem; min-width: 0; }
figure img { width: 100%; height: auto; display: block; border: 1px solid #ccc; }
figcaption { font-size: .92rem; margin-top: .25rem; }
pre { overflow-x: auto; background: #f1f1f1; padding: .6rem; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; max-width: 60rem; }
@media print { .scroll { overflow: visible; } }
"""


class Picture(NamedTuple):
  """A drawing on the page, and a file beside it.

  Attributes:
    name: of the file.
    png: its content.
    alt: what is to be seen, for those who do not see it.
    caption: below it.
  """

  name: str
  png: bytes
  alt: str
  caption: str


def text(content: object) -> str:
  """Any text, so that it is shown as it is."""
  return html.escape(str(content))


def name(content: str) -> str:
  """A name as text that may break after its parts, where it is narrow."""
  return re.sub(r"[_.:/@](?=.)", r"\g<0><wbr>", text(content))


def paragraph(content: str) -> str:
  """A text as a paragraph."""
  return f"<p>{text(content)}</p>"


def note(content: str) -> str:
  """A paragraph that nobody should miss."""
  return f'<p class="note"><strong>Note.</strong> {text(content)}</p>'


def preformatted(lines: Iterable[str]) -> str:
  """Commands, one below the other."""
  return f"<pre>{text(chr(10).join(lines))}</pre>"


def table(
  header: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, name: str
) -> str:
  """A table that scrolls in a box of its own where the page is narrow.

  Args:
    header: of the columns, HTML.
    rows: cells as `<td>`; the first of each is its header, HTML without a tag.
    caption: above it, text.
    name: for those who hear the page, text.
  """
  head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
  body = "".join(
    f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>\n' for first, *cells in rows
  )
  return (
    f'<div class="scroll" role="region" aria-label="{text(name)}" tabindex="0">'
    f"<table><caption><span>{text(caption)}</span></caption>"
    f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
  )


def cell(content: str, kind: str = "text") -> str:
  """A `<td>` of HTML; `number` does not break, `text` may."""
  return f'<td class="{kind}">{content}</td>'


def with_small(main: str, small: str) -> str:
  """A text below HTML, and smaller; '' for none."""
  return main + (f"<small>{text(small)}</small>" if small else "")


def pictures(content: Iterable[Picture]) -> str:
  """Drawings beside each other as far as there is room."""
  figures = (
    f'<figure><img src="data:image/png;base64,'
    f'{base64.b64encode(picture.png).decode()}" alt="{text(picture.alt)}">'
    f"<figcaption>{text(picture.caption)}</figcaption></figure>"
    for picture in content
  )
  return '<div class="pictures">' + "\n".join(figures) + "</div>"


def page(title: str, introduction: str, sections: Sequence[tuple[str, str]]) -> str:
  """The whole page.

  Args:
    title: text.
    introduction: HTML.
    sections: (heading as text, content as HTML).
  """
  anchors = [heading.lower().replace(" ", "-") for heading, _ in sections]
  links = "".join(
    f'<li><a href="#{text(anchor)}">{text(heading)}</a></li>'
    for anchor, (heading, _) in zip(anchors, sections, strict=True)
  )
  body = "\n".join(
    f'<section aria-labelledby="{text(anchor)}">'
    f'<h2 id="{text(anchor)}">{text(heading)}</h2>\n{content}</section>'
    for anchor, (heading, content) in zip(anchors, sections, strict=True)
  )
  return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<header><h1>{text(title)}</h1>
{introduction}
<nav aria-label="Sections"><ul>{links}</ul></nav></header>
<main>
{body}
</main>
</body>
</html>
"""
