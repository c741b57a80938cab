"""
A run from its binlogs to its result.

A job is a list of small work descriptions, one task each (see `conflict.history.tasks`). A task reads its part and
writes its part of the result itself; only summaries come back to the driver.
"""
