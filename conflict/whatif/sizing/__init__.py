"""The sizes of a log in every format: measured, as a document, as a chart."""
