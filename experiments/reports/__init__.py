"""The page of a sweep: bsuite's scores, drawings, and how each number was made."""
