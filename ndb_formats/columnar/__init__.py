"""
Rows events to Arrow record batches, many rows at a time; the values are those of the scalar codecs.

`batches` reads a file: `event_index` finds its events, `event_chunks` unpacks them, `row_walk` finds the offsets of the
values with the help of `tables`, and `column_arrays` makes an array of each column. A new column type works without a
line here, through its codec; to make it fast, add a loop in `kernels` and a case in `fast_columns.fast_reader`.
"""
