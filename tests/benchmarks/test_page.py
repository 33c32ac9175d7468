"""The page of benchmarks has the numbers of the files."""


def test_tables_are_those_of_the_files(load):
  page = load("page")
  text = page.PAGE.read_text(encoding="utf-8")
  assert page.fill(text) == text, "run python benchmarks/page.py"
  for name in page.tables():
    assert f"<!-- table: {name} -->" in text, name
