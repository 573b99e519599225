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


def test_what_is_loaded_is_the_same_whatever_is_done_to_it_afterwards() -> None:
    dirty = SetupFile(path="/dirty.sql", sha256="1")
    loaded = Dataset(pgbench_scale=1)
    prepared = Dataset(pgbench_scale=1, prepare=(dirty,), variables=(("dead", "70"),))
    assert not Dataset(prepare=(dirty,)).is_empty
    assert prepared.loaded == loaded == loaded.loaded
