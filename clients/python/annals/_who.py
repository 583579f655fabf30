"""What is sent before a change, and when: the setting `annals.who` of a transaction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from annals._warnings import warn_once

#: The text is the statement's one parameter, named or positional as the driver has it.
SETTING: Final = "select pg_catalog.set_config('annals.who', {who}, true)"
SETTING_AND_MESSAGE: Final = (
    "select pg_catalog.set_config('annals.who', one.who, true), "
    "case when not pg_catalog.pg_is_in_recovery() "
    "then pg_catalog.pg_logical_emit_message(true, 'annals.who', one.who) end "
    "from (select cast({who} as pg_catalog.text) as who) as one"
)
#: The text that ends what was set before in the same transaction.
NOBODY: Final = "{}"


def statement(who: str, capture: bool) -> str:
    """The statement with a placeholder, or a literal, for the text."""
    return (SETTING_AND_MESSAGE if capture else SETTING).format(who=who)


def probe(capture: bool) -> str:
    """A statement that fails where the server lacks these functions, or does not let us call them.
    It is to be run in a transaction that is rolled back."""
    return statement("'{}'", capture)


class Server:
    """Whether a server lets us attribute: unknown until it was probed once."""

    def __init__(self) -> None:
        self.allows: bool | None = None

    def refused(self, error: BaseException, of: str) -> None:
        """A probe failed. One that has no SQLSTATE says nothing: the connection broke."""
        state = sqlstate(error)
        if state is None or state.startswith(("08", "40", "53", "57")):
            return
        self.allows = False
        warn_once(
            f"refused {of}",
            f"Changes of {of} are not attributed, because the server refuses annals.who "
            f"(SQLSTATE {state}): {str(error).splitlines()[0]}",
        )


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of an error of psycopg, psycopg2, asyncpg or pg8000, however it is wrapped."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        for name in ("sqlstate", "pgcode"):
            state = getattr(one, name, None)
            if isinstance(state, str):
                return state
        orig = getattr(one, "orig", None)
        one = orig if isinstance(orig, BaseException) else one.__cause__
    return None


def status(raw: Any) -> int | None:
    """The transaction of a connection of psycopg or psycopg2: IDLE, or INERROR where it failed.
    None of another driver."""
    found = getattr(getattr(raw, "info", None), "transaction_status", None)
    return None if found is None else int(found)


IDLE: Final = 0
INERROR: Final = 3


class Transaction:
    """What is set in the transaction of a connection."""

    __slots__ = ("_set", "_is_known")

    def __init__(self) -> None:
        self.begins()

    def begins(self) -> None:
        """A transaction begins, or has ended: nothing is set."""
        self._set: str | None = None
        self._is_known = True

    def goes_back(self) -> None:
        """A savepoint was rolled back, and with it what was set since: it may be anything."""
        self._is_known = False

    @property
    def is_untouched(self) -> bool:
        return self._is_known and self._set is None

    def text_to_send(self, who: str | None) -> str | None:
        """What to send before a change by `who`; None where it is set already. A change by nobody
        ends what was set for the change before."""
        if self._is_known and self._set == who:
            return None
        return NOBODY if who is None else who

    def sent(self, who: str | None) -> None:
        self._set = who
        self._is_known = True


_ROW_WORDS = frozenset(("insert", "update", "delete", "merge"))
_BOUNDS = frozenset(("begin", "start", "commit", "end", "rollback", "abort"))
_FIRST = re.compile(r"(?:[\s;]++|--[^\n\r]*+)*+([a-z]+)", re.IGNORECASE)
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<literal>e'(?:[^'\\]++|\\.|'')*+'|(?:u&)?'(?:[^']++|'')*+'|"(?:[^"]++|"")*+")
    |(?P<quote>\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)
    |(?P<word>[a-z_\u0080-\uffff][\w$\u0080-\uffff]*)
    |(?P<sign>.)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL | re.ASCII,
)
_COMMENT = re.compile(r"/\*|\*/")


def writes(text: str) -> bool:
    """Whether a statement changes rows by itself: INSERT, UPDATE, DELETE, MERGE, WITH that contains
    one of these, COPY … FROM, TRUNCATE. A mistake costs a round trip or an actor, never a failure.
    """
    word = _first_word(text)
    if word in ("with", "copy"):
        return _writes_further_on(text, word)
    return word in _ROW_WORDS or word == "truncate"


def is_row_statement(text: str) -> bool:
    """Whether it is one INSERT, UPDATE, DELETE, MERGE or WITH of these, and nothing else."""
    return _first_word(text) in (*_ROW_WORDS, "with") and writes(text) and not _has_more(text)


def goes_back(text: str) -> bool:
    """Whether a text begins or ends a transaction, or rolls back to a savepoint."""
    word = _first_word(text)
    if word in _BOUNDS:
        return True
    if word != "prepare" and ";" not in text:
        return False
    previous, begins = "", True
    for token, is_word in _tokens(text):
        word = token.lower() if is_word else token
        if (begins and word in _BOUNDS) or (previous == "prepare" and word == "transaction"):
            return True
        previous, begins = word, token == ";"
    return False


def _first_word(text: str) -> str:
    match = _FIRST.match(text)
    if match is not None:
        return match[1].lower()
    for token, is_word in _tokens(text):
        if token not in (";", "("):
            return token.lower() if is_word else ""
    return ""


def _writes_further_on(text: str, first: str) -> bool:
    depth, previous = 0, ""
    for written, is_word in _tokens(text):
        token = written.lower()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == ";" and previous:
            return False
        elif first == "copy":
            if depth == 0 and is_word and token in ("from", "to"):
                return token == "from"
        elif is_word and token in _ROW_WORDS:
            # `select … for update`, and a column or an alias of that name, begin no statement.
            begins = depth == 0 and previous not in ("for", "key", "as", ".", ",")
            if previous == "(" or begins:
                return True
        previous = token
    return False


def _has_more(text: str) -> bool:
    """Whether a text has a second statement."""
    if ";" not in text:
        return False
    begun = ended = False
    for token, _ in _tokens(text):
        if token == ";":
            ended = begun
        elif ended:
            return True
        else:
            begun = True
    return False


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """The words and signs of a text, without its comments and literals; which of them are words."""
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        if match["comment"]:
            at = _end_of_comment(text, match.start())
        elif match["quote"]:
            end = text.find(match["quote"], at)
            at = len(text) if end < 0 else end + len(match["quote"])
            yield match["quote"], False
        elif match["literal"]:
            yield "", False
        elif match["word"]:
            yield match["word"], True
        elif match["sign"]:
            yield match["sign"], False


def _end_of_comment(text: str, start: int) -> int:
    """Comments of PostgreSQL nest."""
    depth, at = 0, start
    while (match := _COMMENT.search(text, at)) is not None:
        at = match.end()
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return at
    return len(text)
