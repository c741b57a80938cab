"""
Conflict functions of one's own: as a value, as a program, by name.
"""
