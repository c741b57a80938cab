"""
A History on disk: Parquet files by segment of epochs and by key bucket.
"""
