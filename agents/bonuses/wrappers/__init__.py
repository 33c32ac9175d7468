"""Bonuses around environments, for agents of other libraries."""
