"""What the top of a report answers: which function, which limit, which cost."""
