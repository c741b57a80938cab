"""
The part of the result that a decided bucket writes, and what it adds to the figures.
"""
