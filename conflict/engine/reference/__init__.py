"""
The reference engine: replays a History change by change, as NDB appliers do, and nothing else.
"""
