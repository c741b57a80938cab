"""
Row changes of binlog files as JSON lines, CSV and Parquet. Computes docs/decode.md.
"""
