"""Tables in Markdown, and their places in a page."""

from explorax.experiments.reports import markdown


def test_numbers_have_four_digits_and_lists_are_left_out():
  table = markdown.table([{"name": "a", "speed": 1234.56, "samples": [1]}, {"name": 2}])
  assert (
    table == "| name | speed |\n| ---- | ----- |\n| a    | 1235  |\n| 2    | –     |"
  )


def test_a_table_fills_its_own_place():
  page = (
    "x\n<!-- table: a -->\nold\n<!-- end -->\n<!-- table: b -->\nkept\n<!-- end -->"
  )
  assert markdown.names(page) == ["a", "b"]
  assert markdown.fill(page, {"a": "new"}) == page.replace("old", "new")
