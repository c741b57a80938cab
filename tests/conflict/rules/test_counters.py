"""Status counters."""

from conflict.rules.counters import zero_counters


def test_counters_have_the_names_that_show_status_gives_them():
    """In the order in which results list them."""
    assert list(zero_counters()) == [
        "Ndb_conflict_fn_old",
        "Ndb_conflict_fn_max",
        "Ndb_conflict_fn_max_del_win",
        "Ndb_conflict_fn_max_ins",
        "Ndb_conflict_fn_max_del_win_ins",
        "Ndb_conflict_fn_epoch",
        "Ndb_conflict_fn_epoch_trans",
        "Ndb_conflict_fn_epoch2",
        "Ndb_conflict_fn_epoch2_trans",
        "Ndb_conflict_trans_row_conflict_count",
        "Ndb_conflict_trans_row_reject_count",
        "Ndb_conflict_trans_reject_count",
        "Ndb_conflict_trans_detect_iter_count",
        "Ndb_conflict_trans_conflict_commit_count",
        "Ndb_conflict_epoch_delete_delete_count",
        "Ndb_conflict_reflected_op_prepare_count",
        "Ndb_conflict_reflected_op_discard_count",
        "Ndb_conflict_refresh_op_count",
    ]
