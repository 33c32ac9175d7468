"""A sweep's report: bsuite's scores, drawings, and how each number was computed."""
