"""The review page: a local web page to review proposals of the taxonomy and to label seeds.

:func:`serve` starts it; ``curate review --web`` calls that.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["serve"]


def serve(workspace: Path, *, port: int = 0, open_browser: bool = True, by: str | None = None) -> None:
    """Serve the review page of a workspace until Ctrl-C; see :func:`curation.review_page.server.serve`."""
    from curation.review_page.server import serve as run

    run(workspace, port=port, open_browser=open_browser, by=by)
