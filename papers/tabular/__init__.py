"""Small learners, jitted, and for many seeds.

learners.py  tables, linear features, and a model, updated at every step
loop.py      acting and learning in an environment written in JAX
"""
