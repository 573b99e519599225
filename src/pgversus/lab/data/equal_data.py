"""Whether the arms of a context hold the same rows, and those that it was begun with."""

import hashlib
from collections.abc import Sequence

from pgversus.errors import DatasetError
from pgversus.lab.data.snapshots import Snapshot
from pgversus.postgres.fingerprint import Fingerprint, refuse_unequal_data
from pgversus.study.comparison import Arm
from pgversus.study.preparation import Preparation
from pgversus.study.study import Context


def refuse_unequal(arms: Sequence[Arm], snapshots: Sequence[Snapshot]) -> None:
    """DatasetError when arms with the same dataset hold other rows; another dataset may be what is compared."""
    like = [
        (arm.label, snapshot.fingerprint)
        for arm, snapshot in zip(arms, snapshots, strict=True)
        if arm.dataset == arms[0].dataset
    ]
    refuse_unequal_data([label for label, _ in like], [fingerprint for _, fingerprint in like])


def refuse_other_data(context: Context, known: Preparation, snapshots: Sequence[Snapshot]) -> None:
    """What was found before holds as long as the data are still the same; DatasetError when they are not."""
    for arm, facts, snapshot in zip(context.comparison.arms, known.arms, snapshots, strict=True):
        if facts.data != data_hash(snapshot.fingerprint):
            raise DatasetError(
                "the data are not those of the earlier blocks",
                slug="dataset-not-the-same",
                where=context.located(arm.label),
                found="other rows than when the study began",
                expected="the same rows each time they are loaded",
                to_do="no random() or now() in setup files without a fixed seed; --new begins afresh",
            )


def data_hash(fingerprint: Fingerprint) -> str:
    """SHA-256 over the rows of every table."""
    text = "\n".join(f"{name} {table.rows} {table.digest}" for name, table in sorted(fingerprint.tables.items()))
    return hashlib.sha256(text.encode()).hexdigest()
