"""Checks a built site: links lead to a page or an anchor, nothing needs a network.

It is called with the folder of the site.
"""

import html.parser
import pathlib
import sys
import urllib.parse

LOADED = {"iframe": "src", "img": "src", "link": "href", "script": "src"}


class Page(html.parser.HTMLParser):
  """The links of a page, what it loads, and the anchors that it has."""

  def __init__(self, path: pathlib.Path):
    super().__init__()
    self.links: list[str] = []
    self.loaded: list[str] = []
    self.anchors: set[str] = set()
    self.feed(path.read_text(encoding="utf-8"))

  def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
    values = {name: value for name, value in attrs if value}
    self.anchors |= {values[name] for name in ("id", "name") if name in values}
    if tag == "a" and "href" in values:
      self.links.append(values["href"])
    if LOADED.get(tag) in values:
      self.loaded.append(values[LOADED[tag]])


def problems(site: pathlib.Path) -> list[str]:
  """One line for each link without a target, and for each file from the network."""
  pages = {path: Page(path) for path in site.rglob("*.html")}
  lines = []
  for path, page in pages.items():
    name = path.relative_to(site)
    for link in page.links + page.loaded:
      parts = urllib.parse.urlsplit(link)
      if parts.scheme or parts.netloc:
        if link in page.loaded and parts.scheme != "data":
          lines.append(f"{name}: {link} is loaded from the network.")
        continue
      target = path.parent / urllib.parse.unquote(parts.path) if parts.path else path
      target = target.resolve()
      anchor = urllib.parse.unquote(parts.fragment)
      if not target.is_file():
        lines.append(f"{name}: {link} leads to no file.")
      elif anchor and target in pages and anchor not in pages[target].anchors:
        lines.append(f"{name}: {link} leads to no anchor of that page.")
  for path in site.rglob("*.css"):
    if "url(http" in path.read_text(encoding="utf-8").replace('"', ""):
      lines.append(f"{path.relative_to(site)}: loads from the network.")
  return lines


def main() -> int:
  site = pathlib.Path(sys.argv[1]).resolve()
  lines = problems(site)
  print("\n".join(lines) or f"All links in {site} lead somewhere.")
  return 1 if lines else 0


if __name__ == "__main__":
  sys.exit(main())
