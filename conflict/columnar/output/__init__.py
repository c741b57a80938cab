"""
What a decided bucket adds to the result.
"""
