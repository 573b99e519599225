from pgversus.study.dataset import Dataset, SetupFile


def test_a_dataset_is_empty_without_scale_and_files() -> None:
    assert Dataset().is_empty
    assert not Dataset(pgbench_scale=1).is_empty
    assert not Dataset(setup_files=(SetupFile(path="/a.sql", sha256="0"),)).is_empty
