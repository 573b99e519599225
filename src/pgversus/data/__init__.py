"""Initial data of the arms: loaded once, cached between runs.

snapshots.py       loaded data for each server and dataset, cached or new
changed_files.py   files that have changed since the study began
dumps.py           data to restore: format and identity
data_directories.py  dumping a database of a data directory or base backup
dumped_database.py  settings and locale of a dumped database
plain_dumps.py     the commands and rows of a dump in plain text
restoring.py       restoring a dump, and the parts of it that a server rejects
loading.py         pgbench's tables, SQL files, preparations
snapshot_key.py    cache key of a snapshot
snapshot_cache.py  storing, retrieving and verifying cached snapshots
cache_quota.py     disk space and the size limit of the cache
"""
