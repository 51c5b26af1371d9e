"""The ``curate`` command."""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["main"]


def _limit_threads(arguments: list[str]) -> None:
    """Polars reads its thread count when it loads, so ``--workers`` must be known before."""
    for position, argument in enumerate(arguments):
        value = argument.partition("=")[2] if argument.startswith("--workers=") else None
        if argument == "--workers" and position + 1 < len(arguments):
            value = arguments[position + 1]
        if value and value.isdigit() and int(value) > 0:
            os.environ.setdefault("POLARS_MAX_THREADS", value)
            os.environ.setdefault("NUMBA_NUM_THREADS", value)


def main() -> None:
    """Entry point: a mistake of the user ends with a sentence and exit code 2, an interruption with 130."""
    _limit_threads(sys.argv[1:])
    from curation.cli.app import app
    from curation.cli.console import errors
    from curation.errors import CurationError

    try:
        app(standalone_mode=True)
    except CurationError as error:
        errors.print(f"[bold red]Error:[/] {_plain(error.message)}", highlight=False, soft_wrap=True)
        if error.hint:
            errors.print(_plain(error.hint), highlight=False, soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT):
            raise
        where = f" {error.filename}" if error.filename else ""
        errors.print(
            f"[bold red]Error:[/] cannot write{_plain(where)}: {error.strerror}", highlight=False, soft_wrap=True
        )
        sys.exit(2)
    except SystemExit as end:
        # An interrupt arrives as this: typer has caught it, and says nothing.
        if end.code == 130:
            errors.print("Interrupted. What is finished is kept: run again to go on.")
        raise


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
