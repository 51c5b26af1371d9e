"""Rows and weights add up, or the run stops with a sentence."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from curation.engine.accounts import check_account
from curation.engine.stage import Account, Params, Stage
from curation.errors import CurationError

STAGE = Stage("lexical", lambda ctx: None, Params, after="ingest")


def account(rejected=0, weight_rejected=0, **given):
    return asdict(Account(**given)) | {"rejected": rejected, "weight_rejected": weight_rejected}


WHOLE = {"rows_in": 10, "kept": 6, "merged": 3, "weight_in": 50, "weight_out": 30, "weight_earlier": 15}


def test_what_adds_up_and_goes_on_from_the_stage_before_passes():
    whole = account(rejected=1, weight_rejected=5, **WHOLE)
    check_account(STAGE, whole, None)
    check_account(STAGE, whole, account(rows_in=12, kept=10, weight_in=60, weight_out=50))


@pytest.mark.parametrize(
    ("rejected", "weight_rejected", "told"),
    [(0, 5, "lost rows: 10 in, 9"), (1, 4, "lost weight: 50 raw rows in, 49")],
)
def test_what_is_lost_is_told(rejected, weight_rejected, told):
    with pytest.raises(CurationError, match=told):
        check_account(STAGE, account(rejected=rejected, weight_rejected=weight_rejected, **WHOLE), None)


@pytest.mark.parametrize(
    ("kept", "weight", "told"), [(11, 50, r"10 \(rows_in\) of the 11"), (10, 51, r"50 \(weight")]
)
def test_rows_that_another_stage_passed_on_are_told(kept, weight, told):
    before = account(rows_in=kept, kept=kept, weight_in=weight, weight_out=weight)
    with pytest.raises(CurationError, match=told):
        check_account(STAGE, account(rejected=1, weight_rejected=5, **WHOLE), before)
