"""The data that arms begin with: loaded once, cached between runs.

snapshots.py       loaded data for each server and dataset, from the cache or new
loading.py         pgbench's tables, SQL files, preparations
snapshot_key.py    what identifies a snapshot
snapshot_cache.py  put into the cache, taken out, verified
cache_quota.py     disk space, and how much the cache may keep
"""
