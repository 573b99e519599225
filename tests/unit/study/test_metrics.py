import pytest

from pgversus.study.metrics import JUDGED, QUANTILES, Metric


def test_tps_is_the_only_metric_where_more_is_better() -> None:
    assert [metric for metric in Metric if metric.more_is_better] == [Metric.TPS]


@pytest.mark.parametrize("metric", Metric)
def test_the_name_of_a_metric_includes_its_unit(metric: Metric) -> None:
    assert metric.unit == ("s" if metric.value.endswith("_s") else "1/s")


def test_quantiles_match_the_names_of_metrics() -> None:
    assert {metric.value: q for metric, q in QUANTILES.items()} == {
        "latency_p50_s": 0.5,
        "latency_p95_s": 0.95,
        "latency_p99_s": 0.99,
    }
    assert Metric.TPS.quantile is None
    assert Metric.LATENCY_P95.quantile == 0.95


def test_neither_p99_nor_the_maximum_is_judged() -> None:
    assert set(Metric) - set(JUDGED) == {Metric.LATENCY_P99, Metric.LATENCY_MAX}
