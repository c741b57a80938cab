"""
What real servers counted and recorded of conflicts, beside what a result derived.
"""
