"""Random typed Histories: any order of commits, applies and rewinds that can be."""

from hypothesis import strategies as st

from conflict import History

KEYS = (1, 2, 3)
_FIRST = "insert 3 v=1 x=1"


@st.composite
def _changes(draw: st.DrawFn) -> str:
    """Draw one to three changes of some rows."""
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        key, v, x = draw(st.sampled_from(KEYS)), draw(st.integers(0, 9)), draw(st.integers(0, 4))
        changes = [f"insert {key} v={v} x={x}", f"update {key} v={v} x={x}", f"update {key} x={x}", f"delete {key}"]
        texts.append(draw(st.sampled_from([*changes, f"read {key}"])))
    return "; ".join(texts)


@st.composite
def typed_histories(draw: st.DrawFn, *, rewinds: bool = False) -> History:
    """Draw a History of up to twelve steps; an epoch can have several, until it is applied."""
    lanes: dict[str, list[str]] = {"A": [_FIRST], "B": []}
    epochs, applied = {"A": 1, "B": 0}, {"A": 0, "B": 0}
    for _ in range(draw(st.integers(1, 12))):
        side = draw(st.sampled_from("AB"))
        other = "B" if side == "A" else "A"
        kinds = ["commit", *["apply"] * (epochs[other] > applied[side]), *["rewind"] * (rewinds and applied[side] > 0)]
        kind = draw(st.sampled_from(kinds))
        if kind == "rewind":
            lanes[side].append("rewind")
            applied[side] = 0
            continue
        # An epoch that the other cluster has applied, or that holds what it waits for, is over.
        joins = epochs[side] > applied[other] and epochs[side] > 0 and kind == "commit" and draw(st.booleans())
        epochs[side] += not joins
        text = draw(_changes())
        if kind == "apply":
            applied[side] = draw(st.integers(applied[side] + 1, epochs[other]))
            text = f"apply {applied[side]}"
        lanes[side].append(f"{epochs[side]}: {text}")
    start = [f"insert {key} v=0 x={draw(st.integers(0, 2))}" for key in KEYS[:2]]
    return History(start=start, A=lanes["A"], B=lanes["B"])
