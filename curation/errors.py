"""Errors that a person can act on: what is wrong, where, what to do."""

from __future__ import annotations

__all__ = ["CurationError"]


class CurationError(Exception):
    """A user's mistake or a state of the machine, told as one sentence.

    The command line prints it without a traceback and exits with code 2.

    Args:
        message: What is wrong and where (file, row, recipe line).
        hint: What to do about it, as a sentence; printed below the message.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n{self.hint}"
