"""The orchestrator: joins everything below it.

studies.py        study files on disk, and where their results go
consent.py        the user's consent to what a study file asks for
dry_run.py        what a study would do
run.py            one study, from names to blocks on disk
bench.py          the measuring of a study whose servers are there
attributing.py    what changed plans account for, measured after the verdicts
workshop.py       what one run works with: builds, private directories, data that are kept
results_folder.py  the results folder of a run: locked, earlier results refused, gone on with or put aside
keeping.py        what a run writes to it, and when
resuming.py       whether a run may go on with earlier results
changes.py        what another question differs in
same_means.py     and only with the same builds, client and machine
site.py           where a study is carried out: data, servers and loads, made when first needed
cache_contents.py  what the cache holds, and taking it out
servers_here.py   every server there is on this host
source_facts.py   what was asked of a build, against what runs
settings_check.py  whether every server takes every setting
failures.py       which failures end the run: the host's, and those of servers of others that stay away
answers.py        from a results folder to what is said of it
explaining/       the plans of what is measured
measuring/        real servers under load or an operation
gates/            reasons to trust a result less
"""
