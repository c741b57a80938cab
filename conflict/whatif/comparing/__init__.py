"""
One History under many conflict functions and formats. Computes docs/compare.md.
"""
