"""
What users lost, change by change. docs/lost.md.
"""
