"""The pages of measurements have the numbers of the files."""


def test_tables_are_those_of_the_files(load):
  page = load("page")
  texts = [path.read_text(encoding="utf-8") for path in page.PAGES]
  for text in texts:
    assert page.fill(text) == text, "run python benchmarks/page.py"
  for name in page.tables():
    assert any(f"<!-- table: {name} -->" in text for text in texts), name


def test_a_goal_is_reached_and_then_kept_or_not(load):
  expected = load("expected")

  def run(*returns: float) -> dict:
    return {"evaluations": [(10 * (i + 1), x) for i, x in enumerate(returns)]}

  assert expected.reached_at(run(1, 5, 3), 4) == 20
  assert expected.reached_at(run(1, 4), 4) is None
  assert expected.afterwards(run(1, 5, 3, 6), 4) == [False, True]
  assert expected.afterwards(run(1, 4), 4) == []
