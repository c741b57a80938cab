"""Places of epochs without a trace, both timelines together: worked by hand."""

from conflict.history.scheduling.placing import Choice, Place, Slot, choose_places
from conflict.history.timeline import END, START

ANYWHERE = Choice(START, END)


def placed(a: list[Slot], b: list[Slot], ends: tuple[int, ...] = (1, 2)) -> tuple[list[Place], list[Place]]:
    """Place the slots of both appliers; both clusters have these own epochs, with one group each."""
    links = {("A", "B"): a, ("B", "A"): b}
    found = choose_places(links, {name: [(epoch, 0) for epoch in ends] for name in "AB"})
    return found["A", "B"], found["B", "A"]


def test_one_place_is_taken():
    """The epoch stands right after the start of its only choice."""
    (place,), _ = placed([Slot(1, (Choice((1, 0), (2, 0)),))], [])
    assert place == Place((0,), 0, (1, 0))


def test_the_first_of_several_places_is_taken_and_all_are_possible():
    """Nothing tells them apart."""
    (place,), _ = placed([Slot(1, (Choice(START, (1, 0)), Choice((2, 0), END)))], [])
    assert place == Place((0, 1), 0, START)


def test_epochs_stay_in_order():
    """The second one cannot be where only earlier places than the first one's are left."""
    first, second = placed(
        [Slot(1, (Choice((1, 0), END),)), Slot(2, (Choice(START, (1, 0)), Choice((2, 0), END)))], []
    )[0]
    assert (first.position, second.possible, second.position) == ((1, 0), (1,), (2, 0))


def test_a_later_trace_bounds_earlier_epochs():
    """What was applied before epoch 2, which left a trace at (2, 0), was applied before that."""
    slots = [Slot(1, (Choice(START, (2, 0)), Choice((2, 0), END))), Slot(2, trace=(2, 0))]
    assert placed(slots, [])[0][0].possible == (0,)


def test_both_sides_cannot_be_early():
    """
    Each cluster made epoch 1, and applied the other's before or after its own.

    A before its own means that B applied A's epoch after its own: its epoch was complete before A's was.
    """
    choices = (Choice(START, (1, 0)), Choice((1, 0), END))
    (a,), (b,) = placed([Slot(1, choices)], [Slot(1, choices)], ends=(1,))
    assert (a.possible, b.possible) == ((0, 1), (0, 1))
    assert (a.position, b.position) == (START, (1, 0))


def test_what_one_side_must_do_bounds_the_other():
    """B can have applied A's epoch 1 only before its own epoch 1; so A applied that after its own."""
    choices = (Choice(START, (1, 0)), Choice((1, 0), END))
    (a,), (b,) = placed([Slot(1, choices)], [Slot(1, choices[:1])], ends=(1,))
    assert (a.possible, a.position) == ((1,), (1, 0))
    assert (b.possible, b.position) == ((0,), START)


def test_a_trace_bounds_the_other_side():
    """B shows A's epoch 1 in its own epoch 1; so A applied that after its own."""
    choices = (Choice(START, (1, 0)), Choice((1, 0), END))
    (a,), _ = placed([Slot(1, choices)], [Slot(1, trace=(1, 0))], ends=(1,))
    assert a.possible == (1,)


def test_news_of_news():
    """B applied A's epoch 2 before its epoch 1 was complete; A's epoch 1 too, which came before."""
    a, b = placed([Slot(1, (ANYWHERE,))], [Slot(1, (ANYWHERE,)), Slot(2, trace=(1, 0))])
    assert a[0].position == (2, 0)
    assert b[0].position == START


def test_a_certain_epoch_without_a_place_is_told():
    """It keeps a place between its neighbours, and no choice is possible."""
    (place, _), _ = placed([Slot(1), Slot(2, trace=(2, 0))], [])
    assert (place.possible, place.chosen, place.position) == ((), None, START)


def test_after_an_epoch_that_would_show_nothing_is_applied():
    """The applier was stopped before it."""
    a, _ = placed([Slot(1, certain=False), Slot(2, (ANYWHERE,), certain=False)], [])
    assert [place.position for place in a] == [None, None]


def test_an_epoch_that_need_not_have_been_applied_bounds_nothing():
    """B may not have applied A's epoch 1 at all, so A's place is free."""
    choices = (Choice(START, (1, 0)), Choice((1, 0), END))
    (a,), (b,) = placed([Slot(1, choices)], [Slot(1, choices[:1], certain=False)], ends=(1,))
    assert a.possible == (0, 1)
    assert (b.possible, b.position) == ((0,), None)
