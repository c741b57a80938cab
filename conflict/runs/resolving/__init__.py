"""
The resolve job: a History on disk to a result on disk, in stages with one task per bucket.
"""
