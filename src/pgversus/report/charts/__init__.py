"""Charts: each a specification in Vega-Lite, with its table.

chart.py     a chart as data, its axes and series
theme.py     colours, marks, fonts
verdicts.py  every verdict with its interval, and two factors as a map
curves.py    latency percentiles, trials in run order, lines over amounts
export.py    all charts of a study, and charts as files
"""
