"""
What a replica's tables need so that changes logged on the source find their rows and give the same rows.

`check.check_replica` compares two schemas; `codes.RULES` is the table of all that it can find.
"""
