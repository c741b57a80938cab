"""
What the text of a statement does not tell, as questions with yes or no; and every outcome that the answers lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

Outcome = TypeVar("Outcome")
# More open questions than this for one statement are not followed: the answers would be too many to show.
_MAX_QUESTIONS = 8


@attrs.define
class Questions:
    """
    Questions that come up while a statement is looked at.

    Attributes:
        answers: The answers that are known or assumed, by the text of the question.
        asked: The questions that came up, with the answer that was used, in order.
    """

    answers: Mapping[str, bool] = attrs.field(factory=dict)
    asked: dict[str, bool] = attrs.field(factory=dict)

    def ask(self, question: str, *, default: bool) -> bool:
        """Return the answer to a question, or its default."""
        return self.asked.setdefault(question, self.answers.get(question, default))


@attrs.frozen
class Answered(Generic[Outcome]):
    """An outcome, and the answers that lead to it."""

    answers: Mapping[str, bool]
    outcome: Outcome


def explore(look: Callable[[Questions], Outcome]) -> Iterator[Answered[Outcome]]:
    """
    Yield the outcome for every combination of answers, the one of all defaults first.

    Args:
        look: Gives the outcome and asks what it needs; it must not change anything else.
    """
    open_answers: list[dict[str, bool]] = [{}]
    while open_answers:
        answers = open_answers.pop()
        questions = Questions(answers)
        outcome = look(questions)
        new = [question for question in questions.asked if question not in answers]
        yield Answered(questions.asked, outcome)
        for position, question in enumerate(new[: _MAX_QUESTIONS - len(answers)]):
            before = {each: questions.asked[each] for each in new[:position]}
            open_answers.append({**answers, **before, question: not questions.asked[question]})


def questions_that_matter(found: list[Answered[Outcome]]) -> tuple[str, ...]:
    """Return the questions on whose answers the outcome depends."""
    texts = dict.fromkeys(question for each in found for question in each.answers)
    return tuple(text for text in texts if _outcomes(found, text, True) != _outcomes(found, text, False))


def _outcomes(found: list[Answered[Outcome]], question: str, answer: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for each in found:
        if each.answers.get(question, answer) is answer and each.outcome not in outcomes:
            outcomes.append(each.outcome)
    return sorted(outcomes, key=repr)
