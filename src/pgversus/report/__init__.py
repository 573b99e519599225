"""Results in, text out. Pure; numbers stay whole until they are shown here.

answer.py          what every report shows
console.py         a console that shows them so
sentences.py       the answer to one comparison in words
overview.py        a study at a glance: rows and sentences
quantities.py      metrics and counters besides the verdict
small_print.py     how it was measured
host_facts.py      what a host told of itself
terminal.py        one comparison as tables for a terminal or a pipe
study_page.py      what a report of a study holds, in its order
study_terminal.py  a study as one table for a terminal or a pipe
markdown.py        a study for a pull request
published.py       published figures beside the measured ones
heat_map.py        a study of several factors as a map
sweeps.py          how a metric goes over levels that are amounts
levels.py          every arm under a load in absolute numbers
times.py           every arm's time of an operation
table_sizes.py     tables and indexes that builds make larger or smaller
verdicts.py        a verdict in plain fields
tidy.py            verdicts or trials, a row for each
csv_tables.py      these as CSV
arrow_tables.py    these for Arrow and Parquet
document.py        the JSON document of one comparison
study_document.py  the JSON document of a study
json_pieces.py     such a document as text
dry_run.py         what would be done
cached.py          what is kept between runs
servers.py         the servers that are here
why.py             why a contender differs, as far as plans and counters tell
plans/             compared plans
charts/            what is drawn
side_by_side/      two results beside each other
article/           a study as a write-up
phases.py          where in a block something happened
safety.py          what a page may do
html.py            pages of HTML from templates
worst_first.py     all verdicts in the order in which they matter
medians.py         medians of what was measured
sensitivity.py     how small a difference would have been seen
plateaus.py        levels that cannot be told apart from the best
next_step.py       what to do now
page/              a study as one page of HTML
aligned.py         rows of text in columns
"""
