"""Charts as Vega-Lite specifications, each with a table of its values.

chart.py     a chart as data, its axes and series
theme.py     colors, marks, fonts
verdicts.py  every verdict with its interval, and two factors as a map
curves.py    latency percentiles, trials in run order, lines over numeric levels
export.py    all charts of a study, and charts as files
"""
