"""
The reference engine: replays a History change by change, as NDB appliers do.

It defines which results are right, and is tested against recordings of real clusters. It is scalar and complete, and
prefers clarity to speed.
"""
