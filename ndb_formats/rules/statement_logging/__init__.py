"""
How a statement is logged: as a statement, as rows, as both or not at all.

`decision` holds the table; the other modules derive a statement's properties from SQL text.
"""
