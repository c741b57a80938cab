"""
What decides: the reference engine, the same compiled, and the inference above both.
"""
