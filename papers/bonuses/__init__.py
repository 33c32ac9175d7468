"""The bonuses that the field uses, on one agent: see docs/guides/bonuses.md."""
