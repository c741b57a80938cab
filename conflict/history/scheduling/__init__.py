"""When each epoch was applied: the schedule, from hints, evidence and the order of causes."""
