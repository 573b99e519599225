"""The command line: one file for each command, and the only place that prints or exits.

main.py                entry point, errors, exit codes
options.py             options that several commands share
answer.py              a run and its answer
hints.py               hints for options that pgversus does not have
question.py            the comparison that the options of compare describe
comparison_options.py  options of compare and timeline
configuration.py       --conf: the settings of an application's own server
compare.py             pgversus compare
timeline.py            pgversus timeline: consecutive versions
run.py                 pgversus run: a study from a file
report.py              pgversus report: one result, two side by side, an article
plans.py               pgversus plans
upgrade_check.py       pgversus upgrade-check: the statements of an application on newer versions
statements.py          pgversus statements
fleet.py               pgversus fleet: its certificates, scheduler and workers; --fleet
demo.py                pgversus demo: a first comparison
studies.py             pgversus studies: the bundled studies
servers.py             pgversus servers
cache.py               pgversus cache
command.py             the command line as typed, for the results folder
output.py              standard output, standard error, and input files
progress.py            progress display while a comparison runs
live_page.py           page of a running study for a browser
progress_rows.py       table of interim verdicts, fitted to the terminal
"""
