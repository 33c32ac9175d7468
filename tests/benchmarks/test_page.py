"""The page of measurements has the numbers of the file."""

from explorax.experiments.reports import markdown


def test_tables_are_those_of_the_file(load):
  page = load("page")
  text = page.PAGE.read_text(encoding="utf-8")
  assert markdown.fill(text, page.tables()) == text, "run python benchmarks/page.py"
  assert set(page.tables()) <= set(markdown.names(text))
