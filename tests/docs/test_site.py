"""The parts of the documentation's build that are ours: formulas and links."""

import pathlib
import runpy

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
  ("lines", "latex"),
  [
    (["r_t + γ_t q_tm1(a*)"], r"r_{t} + γ_{t} q_{t-1}(a^{*})"),
    (["sqrt( Σ_k (δ_k − δ̄)² )"], r"\sqrt{\sum _{k} (δ_{k} - \bar{δ})^{2}}"),
    (["x_{t+1},    for all x"], r"x_{t+1},\quad \text{ for all }x"),
    (["r^i_t max_a h⁻¹(q)"], r"r^{i}_{t} \operatorname{max}_{a} h^{-1}(q)"),
    (["a = b", "    + c"], r"\begin{aligned}a & = b \\ & \quad + c\end{aligned}"),
  ],
)
def test_formulas_become_latex(lines, latex):
  to_latex = runpy.run_path(str(DOCS / "_ext" / "formulas.py"))["to_latex"]
  assert to_latex(lines) == latex


def test_links_to_nothing_and_files_of_the_network_are_found(tmp_path):
  problems = runpy.run_path(str(DOCS / "check_site.py"))["problems"]
  (tmp_path / "b.html").write_text("<h1 id='here'>b</h1>")
  good = (
    "<a href='b.html#here'></a> <a href='https://x.org'></a> <a href='#me' id='me'>"
  )
  (tmp_path / "a.html").write_text(good)
  assert problems(tmp_path) == []
  bad = (
    "<a href='c.html'></a> <a href='b.html#gone'></a> <img src='https://x.org/i.png'>"
  )
  (tmp_path / "a.html").write_text(bad)
  assert len(problems(tmp_path)) == 3
