from pgversus.study.dataset import Dataset, SetupFile


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
