"""The orchestrator: joins everything below it.

studies.py        study files on disk, and where their results go
dry_run.py        what a study would do
room.py           whether there is room for its data, and making some
run.py            one study, from names to blocks on disk
results_folder.py  the results folder of a run: locked, earlier results refused, gone on with or put aside
keeping.py        what a run writes to it, and when
resuming.py       whether a run may go on with earlier results
same_means.py     and only with the same builds, client and machine
course.py         how far one context has come
engine.py         turns, looks, and when to stop
starts.py         one start of the servers and the blocks measured on it
apparatus.py      what the engine drives, as protocols
site.py           where a study is carried out: data, servers and loads, made when first needed
settings_check.py  whether every server takes every setting
harness.py        how a context is measured: by load, or as an operation
load_harness.py   a context that is measured by load
operation_harness.py  a context that is measured as an operation
operation.py      an operation, once
watching.py       what a long operation is doing
snapshots.py      data loaded once for each server and dataset
loading.py        making these data: loaded into a cluster, or prepared on a copy
recipes.py        what a snapshot is made of, and the key that follows from it
snapshot_shelf.py  what a run takes from the cache of snapshots and puts there
snapshot_cache.py  that cache: whole or not at all, checked when taken
cache_room.py     how much it may hold, and what goes first
cache_contents.py  what is in the whole cache, and taking it out
arms.py           an arm's server: started on a copy of its snapshot
equal_data.py     whether arms hold the same rows, also later on
server_set.py     the servers of all arms of a context, started and stopped together
postgres_apparatus.py  the apparatus on real servers and a real pgbench
warm_up.py        load that is thrown away until it is steady
readings.py       what servers and host have counted, before and after a window
failures.py       which failures are the host's and end the run
pilot.py          the discarded first load: does it run, does it write, how slow is it
load.py           one window of pgbench
gates.py          caveats from what the arms are and did
disturbance.py    whether something else had the host in a window
measured.py       what was measured of one arm
load_gates.py     caveats from what was counted in the windows
pressure_gates.py  caveats from waiting for memory and disk
answers.py        from a results folder to what is said of it
run_directory.py  the run's private directories and their removal
progress.py       what the outside may watch
"""
