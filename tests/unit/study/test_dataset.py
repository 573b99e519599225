from pgversus.study.dataset import Dataset, SetupFile


def test_a_dataset_with_setup_or_prepare_files_runs_files() -> None:
    file = SetupFile(path="/a.sql", sha256="0")
    with_files = [Dataset(setup_files=(file,)), Dataset(pgbench_scale=1, prepare=(file,))]
    assert all(dataset.runs_files for dataset in with_files)
    assert not Dataset(pgbench_scale=1, prepare=(file,)).loaded.runs_files


def test_a_dataset_is_empty_without_scale_and_files() -> None:
    assert Dataset().is_empty
    assert not Dataset(pgbench_scale=1).is_empty
    assert not Dataset(setup_files=(SetupFile(path="/a.sql", sha256="0"),)).is_empty


def test_loaded_data_does_not_depend_on_preparation() -> None:
    dirty = SetupFile(path="/dirty.sql", sha256="1")
    loaded = Dataset(pgbench_scale=1)
    prepared = Dataset(pgbench_scale=1, prepare=(dirty,), variables=(("dead", "70"),))
    assert not Dataset(prepare=(dirty,)).is_empty
    assert prepared.loaded == loaded == loaded.loaded
