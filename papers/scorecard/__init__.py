"""All methods of exploration on the same tasks, at equal steps.

    runs.py     methods, tasks, settings chosen on other seeds, and what is measured
    table.py    the figure: scores, ranks, profiles and costs, and claims

docs/guides/figures.md says how to make it.
"""
