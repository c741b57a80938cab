"""Which figures of a comparison depend on decisions that the binlogs leave open."""

from conflict.whatif.comparing.caveats import open_figures


def test_a_function_that_judges_transactions() -> None:
    """Its own counter has operations in conflict themselves; those that it rejects are the same."""
    ranges = {"Ndb_conflict_fn_epoch2_trans": (3, 5)}
    assert open_figures({"Ndb_conflict_fn_epoch2_trans": 4}, ranges) == (
        ". Conflicts, lost updates and rows are the same either way; this counter of the configured functions can "
        "differ: Ndb_conflict_fn_epoch2_trans (3 to 5)"
    )


def test_a_function_that_judges_row_by_row() -> None:
    """Its counter has what it rejects, so conflicts can be others."""
    ranges = {"Ndb_conflict_fn_epoch": (3, 9), "Ndb_conflict_epoch_delete_delete_count": (0, 1)}
    counters = {"Ndb_conflict_fn_epoch": 5, "Ndb_conflict_epoch_delete_delete_count": 1}
    assert open_figures(counters, ranges) == (
        ": under the configured functions conflicts, and lost updates with them, can be up to 2 fewer or 4 more; "
        "counters: Ndb_conflict_fn_epoch (3 to 9), Ndb_conflict_epoch_delete_delete_count (0 to 1)"
    )


def test_no_range_is_known() -> None:
    """Then it is only said that there are other answers."""
    assert open_figures({}, {}) == (
        "; its figures under the configured functions are those of one of the possible answers"
    )
