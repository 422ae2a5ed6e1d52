# SPDX-License-Identifier: Apache-2.0
"""Reading a JSON document field by field: every mistake is noted under its field's name, and reading goes on with the default."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from broker.core.request import FieldProblem

_Read = TypeVar("_Read")

_HUGE = 1e300  # JSON has integers that no float can hold


class Reader:
    """One object of the document. Mistakes go to the list `problems`, which all readers of a document share."""

    def __init__(self, document: object, problems: list[FieldProblem], place: str = "") -> None:
        self._place, self._problems = place, problems
        self._known: set[str] = set()
        self._fields: Mapping[str, Any] = {}
        if isinstance(document, Mapping):
            self._fields = document
        else:
            self._complain(place or "the document", "must be an object")

    def __contains__(self, field: str) -> bool:
        """Is there a value? null is none."""
        self._known.add(field)
        return self._fields.get(field) is not None

    def whole(self, field: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number; 1e9 and 5.0 are ones too. Without a default it is compulsory."""
        value = self._value(field, default is None)
        if value is None:
            return least if default is None else default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.complain(field, f"must be a whole number (it is {_short(value)})")
        elif not least <= value <= most:
            self.complain(field, f"{value} is not in {least}..{most}")
        else:
            return value
        return least if default is None else default

    def number(self, field: str, least: float, most: float, default: float | None = None) -> float:
        """A number in [least, most], `default` where it is absent; otherwise the mistake is noted."""
        value = self._value(field, default is None)
        if value is None:
            return least if default is None else default
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _HUGE:  # NaN is no number either
            self.complain(field, f"must be a number (it is {_short(value)})")
        elif not least <= value <= most:
            self.complain(field, f"{value:g} is not in {least:g}..{most:g}")
        else:
            return float(value)
        return least if default is None else default

    def text(self, field: str, default: str | None = None) -> str:
        """A text, `default` where it is absent; otherwise the mistake is noted."""
        value = self._value(field, default is None)
        if value is None:
            return default or ""
        if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
            self.complain(field, "must be a text of 1 to 200 printable characters")
            return default or ""
        return value

    def flag(self, field: str) -> bool:
        """True or false; false when absent."""
        value = self._value(field, False)
        if value is not None and not isinstance(value, bool):
            self.complain(field, f"must be true or false (it is {_short(value)})")
            return False
        return bool(value)

    def part(self, field: str) -> "Reader":
        """The object under `field`; an empty one when absent."""
        value = self._value(field, False)
        return Reader({} if value is None else value, self._problems, self._name(field))

    def each(self, field: str, most: int, read: Callable[["Reader"], _Read]) -> tuple[_Read, ...]:
        """The objects of a list, each taken by `read`; none when absent."""
        entries = self._list(field, most)
        return tuple([read(Reader(entry, self._problems, f"{self._name(field)}[{i}]")) for i, entry in enumerate(entries)])

    def texts(self, field: str, most: int) -> tuple[str, ...]:
        """A list of texts; none when absent."""
        entries = self._list(field, most)
        for i, entry in enumerate(entries):
            if not isinstance(entry, str):
                self.complain(f"{field}[{i}]", f"must be text (it is {_short(entry)})")
        return tuple([entry for entry in entries if isinstance(entry, str)])

    def complain(self, field: str, detail: str) -> None:
        """Note a mistake of a field; all of them are raised together."""
        self._complain(self._name(field), detail)

    def end(self) -> None:
        """Nothing else may be there: a misspelt field would otherwise silently be its default."""
        for field in self._fields:
            if field not in self._known:
                self.complain(str(field)[:60], f"is unknown; there are: {', '.join(sorted(self._known))}")

    def _value(self, field: str, compulsory: bool) -> Any:
        self._known.add(field)
        value = self._fields.get(field)
        if value is None and compulsory:
            self.complain(field, "is missing")
        return value

    def _list(self, field: str, most: int) -> list[Any]:
        value = self._value(field, False)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.complain(field, "must be a list")
            return []
        if not value:
            self.complain(field, "is an empty list; leave it out, or name something")
        if len(value) > most:
            self.complain(field, f"has {len(value)} entries, at most {most} are possible")
            return []
        return list(value)

    def _name(self, field: str) -> str:
        return f"{self._place}.{field}" if self._place else field

    def _complain(self, name: str, detail: str) -> None:
        self._problems.append(FieldProblem(name, detail))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
