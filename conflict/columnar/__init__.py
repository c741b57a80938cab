"""
The columnar engine: the semantics of the reference engine over arrays.
"""
