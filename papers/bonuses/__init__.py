"""The bonuses that the field uses, on one agent: see docs/minigrid.md."""
