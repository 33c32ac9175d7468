"""Settings of Sphinx. Its source folder is the root, so that links hold there too."""

import pathlib
import sys

import explorax

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

project = "explorax"
release = explorax.__version__
root_doc = "docs/index"
include_patterns = [
  "docs/**",
  "agents/*/README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
]
exclude_patterns = ["docs/_*", ".*"]

extensions = [
  "docstrings",
  "mathml",
  "myst_nb",
  "sphinx.ext.autosummary",
  "sphinx.ext.napoleon",
  "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# The build runs the notebooks, in a temporary folder; an error in a cell stops it.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 1800  # Seconds per cell.
nb_merge_streams = True
nb_render_markdown_format = "myst"  # With tables.
default_role = "py:obj"
napoleon_custom_sections = [("Attributes", "params_style")]
autodoc_inherit_docstrings = False
autosummary_generate = False
autodoc_preserve_defaults = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "explorax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
# The folder that `make docs` names opens on the first page.
templates_path = ["_templates"]
html_additional_pages = {"index": "redirect.html"}
