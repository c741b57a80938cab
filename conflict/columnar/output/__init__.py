"""
What a decided bucket writes of the result, and adds to the figures.
"""
