"""Figures of paper 1, temporally-extended ε-greedy exploration."""
