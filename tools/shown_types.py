"""
Signatures of the API reference as readers need them: what a function returns to them, and no alias of a type.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import griffe

__all__ = ["ShownTypes"]


class ShownTypes(griffe.Extension):
    """Return types as users get them, aliases written out, and the members of enumerations."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change the signatures of a package, once all its modules are loaded."""
        self._visit(pkg)

    def _visit(self, owner: griffe.Module | griffe.Class) -> None:
        for member in owner.members.values():
            if member.is_alias:
                continue
            if isinstance(member, griffe.Module | griffe.Class):
                self._visit(member)
                _name_members(member)
            elif isinstance(member, griffe.Function):
                _mend(member)


def _name_members(owner: griffe.Module | griffe.Class) -> None:
    """Name the members of an enumeration in its docstring."""
    if isinstance(owner, griffe.Class) and owner.docstring and any(str(base).endswith("Enum") for base in owner.bases):
        names = (name for name, member in owner.members.items() if name.isupper() and member.is_attribute)
        owner.docstring.value += f"\n\nMembers: {', '.join(f'`{name}`' for name in names)}."


def _mend(function: griffe.Function) -> None:
    """Return the type of the answer, and write types out."""
    for decorator in function.decorators:
        if decorator.callable_path.endswith(".answering"):
            (answer,) = decorator.value.arguments
            function.returns = function.module[str(answer)].returns
    function.returns = _written_out(function.returns)
    for parameter in function.parameters:
        parameter.annotation = _written_out(parameter.annotation)


def _written_out(annotation: Any) -> Any:
    """Return an annotation with the types that its aliases stand for."""
    if isinstance(annotation, griffe.ExprName):
        meant = _value_of(annotation)
        return annotation if meant is None else _written_out(meant)
    if isinstance(annotation, griffe.Expr):
        for field in fields(annotation):
            value = getattr(annotation, field.name)
            if isinstance(value, list):
                setattr(annotation, field.name, [_written_out(each) for each in value])
            elif isinstance(value, griffe.Expr):
                setattr(annotation, field.name, _written_out(value))
    return annotation


def _value_of(name: griffe.ExprName) -> griffe.Expr | None:
    """Return what an alias of a type stands for; None of any other name."""
    scope = name.parent
    try:
        found = scope.modules_collection[name.canonical_path]
        found = found.final_target if found.is_alias else found
    except (griffe.AliasResolutionError, AttributeError, KeyError):
        return None
    is_alias = isinstance(found, griffe.Attribute) and isinstance(found.value, griffe.ExprBinOp | griffe.ExprSubscript)
    return found.value if is_alias else None
