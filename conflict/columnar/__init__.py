"""
The columnar engine: the same semantics as the reference engine, over arrays.
"""
