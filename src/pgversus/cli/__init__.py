"""The command line: one file for each command, and the only place that prints or exits.

main.py           entry, errors, exit codes
options.py        flags of how to measure, and the measuring
question.py       from the flags of compare to the question they ask
compare.py        pgversus compare
run.py            pgversus run: a study from a file
report.py         pgversus report: one result, two side by side, an article
plans.py          pgversus plans
demo.py           pgversus demo: a first comparison
studies.py        pgversus studies: the bundled studies
servers.py        pgversus servers
cache.py          pgversus cache
command.py        the command as it was typed
output.py         standard output and standard error, and files that flags name
progress.py       what is shown while a comparison runs
progress_rows.py  its table of verdicts so far, fitted to the lines of a terminal
"""
