"""
The reference engine: replays a History change by change, as an NDB applier does.

It is the definition of right, and recordings alone judge it. Scalar, obvious, complete.
"""
