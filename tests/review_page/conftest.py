"""Fixtures of the desk's tests: a workspace to review, a desk on it."""

import pytest

from curation.review_page.desk import Desk
from tests.review_page.given import PROPOSALS, make_workspace


@pytest.fixture
def root(tmp_path):
    return make_workspace(tmp_path / "w", PROPOSALS)


@pytest.fixture
def desk(root):
    desk = Desk(root)
    yield desk
    desk.close()
