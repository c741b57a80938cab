"""
Histories that are typed in: what users of two clusters did and when appliers applied it, as a value.
"""
