"""
Row changes of binlog files as files of other programs. What the command `decode` does.
"""
