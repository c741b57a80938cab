"""
What users lost, change by change, and the SQL that repairs it. docs/lost.md, docs/repair.md.
"""
