"""
The reference engine: replays a History change by change, as an NDB applier would.

It is the definition of right, and it is judged by recordings alone. Scalar, obvious, complete.
"""
