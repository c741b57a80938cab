"""
How what users change spreads over the clusters of a simulation, and what of it is lost.

Computes `conflict.rules.lost_updates` on each cluster. A change that an epoch apply relays comes from the changes of
users that the operations on its row came from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int8, Int32, Int64, UInt64
from conflict.engine.kernels.records import DecisionBuffers, Records
from conflict.engine.kernels.rules import is_delete_delete
from conflict.rules.decision import Verdict
from ndb_formats.columnar.kernel import inlined, kernel

APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
NOBODY, FULL = -1, -1


class Taken(NamedTuple):
    """
    What appliers took of the logged epochs of their sources.

    Attributes:
        first: The first epoch of each cluster, and the number of all; the open epoch of each is its last one. Shape
            (clusters + 1,).
        owner: The cluster of each. Shape (epochs,).
        sources: The source of each cluster; -1 for none. Shape (clusters,).
        done: How many epochs of its source each applier took. Shape (clusters,).
        applied: When it had applied them. Shape (clusters, most of them).
        carriers: Its own epoch that carries each of them on; -1 for none. Shape (clusters, most of them).
    """

    first: Int64
    owner: Int64
    sources: Int64
    done: Int64
    applied: Int64
    carriers: Int64


@kernel
def spread_epochs(order, taken, came, waiting):
    """
    Find when what each epoch brings was applied on each cluster, by way of others too, and what is on its way.

    Args:
        order: All logged epochs, the last that ended first: an epoch ends before those that carry it on.
        taken: `Taken`.
        came: Filled in; `NEVER` before. Shape (epochs, clusters).
        waiting: Filled in, of open epochs before: whether they will be logged. Shape (epochs,).
    """
    clusters = len(taken.sources)
    for epoch in order:
        side = taken.owner[epoch]
        place = epoch - taken.first[side]
        for follower in range(clusters):
            if taken.sources[follower] != side:
                continue
            if place >= taken.done[follower]:
                waiting[epoch] = True
                continue
            came[epoch, follower] = min(came[epoch, follower], taken.applied[follower, place])
            carrier = taken.carriers[follower, place]
            if carrier >= 0:
                waiting[epoch] |= waiting[carrier]
                for each in range(clusters):
                    came[epoch, each] = min(came[epoch, each], came[carrier, each])


class ChangedParts(NamedTuple):
    """
    Which parts of its row each change concerns, as sets of bits in two words. Shape (changes, 2) unless said.

    Attributes:
        bits: The bit of each part, from the first word on. Shape (parts,).
        wanted: What it writes where it was made.
        hidden: What it leaves nothing of there.
        brought: What it writes on another cluster.
        overwrites: What it overwrites there.
    """

    bits: Int64
    wanted: UInt64
    hidden: UInt64
    brought: UInt64
    overwrites: UInt64


class Happened(NamedTuple):
    """
    What happened.

    Attributes:
        decisions: All decisions.
        applies: All epoch applies. `EPOCH_APPLY`.
        own_end: Changes of the applier's cluster below this number, among its own, come before each. Shape (applies,).
        changes: The changes of all clusters. `CHANGE`.
        begin: First change of each cluster, and the number of all. Shape (clusters + 1,).
        made: The cluster that made each change, where it is the user's. Shape (changes,).
        at: When each was committed. Shape (changes,).
        epoch: Which of `came` each is in. Shape (changes,).
        came: When each epoch had reached each cluster. Shape (epochs, clusters).
    """

    decisions: DecisionBuffers
    applies: Records
    own_end: Int32
    changes: Records
    begin: Int64
    made: Int8
    at: Int64
    epoch: Int32
    came: Int64


class Lost(NamedTuple):
    """
    What became of each change of a user. bool, shape (changes,).

    Attributes:
        refused: Whether an applier rejected it.
        rejected: Whether that lost it.
        overwritten: Whether a change that had not seen it overwrote it.
    """

    refused: Bool
    rejected: Bool
    overwritten: Bool


class Origins(NamedTuple):
    """
    The changes of users that relayed changes come from.

    Attributes:
        start: Where those of each change begin in `found`. Shape (changes,).
        stop: Where they end.
        found: Numbers of changes. Shape (room,).
        used: How many there are. Shape (1,).
        first: Of each row, its first decision of the last epoch apply that changed it. Shape (keys,).
        last: Its last one.
        apply: That epoch apply. Shape (keys,).
        following: The next decision of the same epoch apply on the same row. Shape (decisions,).
    """

    start: Int32
    stop: Int32
    found: Int32
    used: Int64
    first: Int32
    last: Int32
    apply: Int32
    following: Int32


@kernel
def trace_losses(happened, parts, keys, lost, room):
    """
    Find the changes that were lost; return whether there was room for the origins of those that were relayed.

    Args:
        happened: `Happened`.
        parts: `ChangedParts`.
        keys: Number of rows.
        lost: `Lost`; filled in.
        room: For how many origins there is room.
    """
    changes, begin, applies, decisions = happened.changes, happened.begin, happened.applies, happened.decisions
    authors = np.full((keys, len(begin) - 1, len(parts.bits)), NOBODY, np.int32)
    origins = _no_origins(len(changes), keys, len(decisions.apply), room)
    done, decision = begin[:-1].copy(), 0
    for number in range(len(applies)):
        here, there = np.int64(applies[number]["applier"]), applies[number]["source"]
        for place in range(done[here], begin[here] + happened.own_end[number]):
            _write(place, authors, here, changes[place]["key"], parts)
        done[here] = max(done[here], begin[here] + happened.own_end[number])
        while decision < len(decisions.apply) and decisions.apply[decision] == number:
            if decisions.source[decision] >= 0:
                change = begin[there] + decisions.source[decision]
                _note_decision(decision, change, here, happened, parts, authors, lost, origins)
                if decisions.verdict[decision] == APPLIED:
                    _follow(decision, number, decisions.key[decision], origins)
            decision += 1
        done[here] = _note_relayed(applies[number], done[here], begin[here + 1], happened, origins)
        if done[here] == FULL:
            return False
    return True


@kernel
def _no_origins(changes, keys, decisions, room):
    places, rows = (np.zeros(changes, np.int32), np.zeros(changes, np.int32)), np.zeros(keys, np.int32)
    apply, following = np.full(keys, NOBODY, np.int32), np.full(decisions, NOBODY, np.int32)
    return Origins(
        places[0], places[1], np.zeros(room, np.int32), np.zeros(1, np.int64), rows, rows.copy(), apply, following
    )


@inlined
def _has(words, change, bit):
    return words[change, bit // 64] >> np.uint64(bit % 64) & np.uint64(1) != 0


@kernel
def _write(change, authors, here, key, parts):
    """Note that a user changed a row."""
    for part in range(len(parts.bits)):
        bit = parts.bits[part]
        if _has(parts.wanted, change, bit):
            authors[key, here, part] = change
        elif _has(parts.hidden, change, bit):
            authors[key, here, part] = NOBODY


@kernel
def _note_decision(decision, change, here, happened, parts, authors, lost, origins):
    """Note what a decision does to the changes that its operation comes from, and to those that these overwrite."""
    decisions, relayed = happened.decisions, happened.changes[change]["relayed"] != 0
    verdict, key = decisions.verdict[decision], decisions.key[decision]
    gone = is_delete_delete(decisions.operation[decision], decisions.cause[decision])
    start, stop = (origins.start[change], origins.stop[change]) if relayed else (np.int32(0), np.int32(1))
    for place in range(start, stop):
        origin = np.int64(origins.found[place]) if relayed else change
        if verdict == REJECTED:
            lost.refused[origin] = True
            lost.rejected[origin] |= not gone
        elif verdict == APPLIED:
            _overwrite(origin, authors, here, key, happened, parts, lost)


@kernel
def _overwrite(change, authors, here, key, happened, parts, lost):
    """Note that a change of another cluster was applied."""
    author, at = happened.made[change], happened.at[change]
    for part in range(len(parts.bits)):
        bit, earlier = parts.bits[part], authors[key, here, part]
        takes = _has(parts.overwrites, change, bit)
        if takes and earlier != NOBODY and happened.made[earlier] != author:
            unseen = happened.came[happened.epoch[earlier], author] > at
            lost.overwritten[earlier] |= unseen
        if takes or earlier == NOBODY:
            authors[key, here, part] = change if _has(parts.brought, change, bit) else NOBODY


@kernel
def _follow(decision, number, key, origins):
    """Note that a decision changed a row in an epoch apply."""
    if origins.apply[key] != number:
        origins.apply[key], origins.first[key] = number, decision
    else:
        origins.following[origins.last[key]] = decision
    origins.last[key] = decision


@kernel
def _note_relayed(apply, place, end, happened, origins):
    """
    Note where the changes come from that an epoch apply relayed, from `place` on.

    Return the first one after these, or `FULL`.
    """
    changes, decisions, used = happened.changes, happened.decisions, origins.used[0]
    there, epoch, group = apply["source"], apply["epoch"], apply["group"]
    while place < end and changes[place]["relayed"]:
        if changes[place]["epoch"] != epoch or changes[place]["group"] != group:
            break
        origins.start[place] = used
        decision = origins.first[changes[place]["key"]]
        while decision != NOBODY:
            change = happened.begin[there] + decisions.source[decision]
            relayed = changes[change]["relayed"] != 0
            count = origins.stop[change] - origins.start[change] if relayed else 1
            if used + count > len(origins.found):
                return FULL
            for each in range(count):
                origins.found[used + each] = origins.found[origins.start[change] + each] if relayed else change
            used += count
            decision = origins.following[decision]
        origins.stop[place] = used
        place += 1
    origins.used[0] = used
    return place
