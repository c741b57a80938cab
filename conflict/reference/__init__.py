"""
The reference engine: replays a History change by change, as NDB appliers do, and nothing else.

It defines which results are right, and is tested against recordings of real clusters. It is scalar and complete, and
prefers clarity to speed. It guesses nothing: what binlogs do not show is found in `conflict.inference`, which adds to
the classes here.
"""
