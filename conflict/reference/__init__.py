"""
The reference engine: replays a History change by change, as NDB appliers do.

It defines which results are right, and recordings of real clusters are its only judge. It is scalar and complete, and
prefers clarity to speed.
"""
