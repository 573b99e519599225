"""Running a study with the packages of all lower layers.

run.py                 a study, from names to blocks on disk
study_host.py          a study on the host that measures it
studies.py             study files on disk, and where their results are stored
consent.py             the user's consent to what a study file requests
estimates.py           dry runs, and whether the host has room for a study
resume.py              results folders, and whether earlier results answer the same question
study_changes.py       changes between two versions of a study, as text
resume_checks.py       whether builds, client and machine are the same as before
resources.py           resources of one run: builds, private directories, snapshots
server_settings.py     whether every server accepts every setting
acting_settings.py     whether every session of the load has the requested settings
build_verification.py  whether the running server matches the request
testbed.py             contexts on real servers: data, servers and loads, created on first use
arm_servers.py         managed and external servers, started and stopped together
failures.py            the cause of a failure: a trial, a server, or the host
readings.py            counters before and after a measurement
runner.py              how a workload is measured, and the results of its first run
load_hosts.py          windows of load that several hosts send at once
load_runner.py         contexts measured by pgbench: the first load, then windows
pilot.py               the first load of every arm, whose numbers are discarded
load_windows.py        windows that are runs of pgbench, warm or cold
slices.py              windows that are slices of a longer run of pgbench
slice_session.py       the longer run, stopped except during its windows, and the places of its processes
operation_runner.py    contexts measured as an operation
results_writer.py      the results that a run writes, and when
plan_capture.py        plans of the measured statements
compared_plans.py      plans of a workload or of an application's statements, without measuring them
plan_sampling.py       plans sampled under load
chosen_values.py       values for statements, chosen from statistics, and which statements can be prepared
confirmation.py        findings of the screening of an upgrade check, measured again
plan_search.py         settings that restore a plan
plan_checks.py         whether captured plans may be compared, or were restored
attribution.py         the effect of plan changes, measured after the verdicts
side_effects.py        effects of settings that undo a slower statement on other statements
inventory.py           servers on this host, contents of the cache
"""
