from pgversus.study.dataset import Dataset, SetupFile


def test_files_of_the_user_run_in_a_dataset_that_has_any_to_load_or_to_prepare_with() -> None:
    file = SetupFile(path="/a.sql", sha256="0")
    with_files = [Dataset(setup_files=(file,)), Dataset(pgbench_scale=1, prepare=(file,))]
    assert all(dataset.runs_files for dataset in with_files)
    assert not Dataset(pgbench_scale=1, prepare=(file,)).loaded.runs_files


def test_a_dataset_is_empty_without_scale_and_files() -> None:
    assert Dataset().is_empty
    assert not Dataset(pgbench_scale=1).is_empty
    assert not Dataset(setup_files=(SetupFile(path="/a.sql", sha256="0"),)).is_empty
