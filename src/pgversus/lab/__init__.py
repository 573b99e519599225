"""A run: joins everything below it.

run.py                 a study from names to blocks on disk
studies.py             study files on disk, and where their results go
consent.py             the user's consent to what a study file requests
estimates.py           what a study would do, and whether the host has room for it
resume.py              results folders, and whether earlier results answer the same question
resume_checks.py       the same builds, client and machine as before
resources.py           what one run holds: builds, private directories, snapshots
server_settings.py     whether every server accepts every setting
build_verification.py  whether what runs is what was requested
testbed.py             contexts on real servers: data, servers and loads, made when first needed
arm_servers.py         managed and external servers, started and stopped together
runner.py              the first run of a workload, counters, failures of the host
load_runner.py         contexts measured by pgbench: the first load, then windows
load_windows.py        windows that are runs of pgbench, warm or cold
slices.py              windows that are slices of a longer run of pgbench
operation_runner.py    contexts measured as an operation
results_writer.py      what a run writes, and when
plan_capture.py        plans of the measured statements
plan_search.py         settings that restore a plan
compared_plans.py      the plans of all arms compared
attribution.py         what changed plans account for, measured after the verdicts
answer.py              from a results folder to an answer
caveats.py             reasons to trust a result less
load_caveats.py        those from counters, rates and drift
inventory.py           servers on this host, contents of the cache
"""
