"""Comparisons without a result are counted like all others."""

import pytest

from benchmarks import identical


def test_a_comparison_without_a_result_does_not_end_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = {"verdict": "undecided", "ratio": None, "low": None, "high": None, "blocks": 0}
    known = {"verdict": "equivalent", "ratio": 1.001, "low": 0.99, "high": 1.012, "blocks": 8}
    answers = iter([unknown, known])
    monkeypatch.setattr(identical, "_compared", lambda *_: {"verdicts": [next(answers)]})
    monkeypatch.setattr("sys.argv", ["identical", "--comparisons", "2"])
    identical.main()
    _, one, other, total = (line.split() for line in capsys.readouterr().out.splitlines())
    assert one[-6:-1] == ["undecided", "-", "-", "-", "0"]
    assert other[-6:-1] == ["equivalent", "1.0010", "0.9900", "1.0120", "8"]
    assert total[-2:] == ["0.0", "%"]
