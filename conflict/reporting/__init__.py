"""One HTML page that shows results to others: the question, the answer, figures, tables. docs/report.md."""
