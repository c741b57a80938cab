"""One HTML page that shows results to others: what was asked, the answer, figures, tables. docs/report.md."""
