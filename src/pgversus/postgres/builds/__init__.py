"""Where PostgreSQL binaries come from.

model.py     what a build is
ready_made/  builds that others have made, from package registries
source/      builds that pgversus makes itself
in_cache.py  builds in the cache: which are in use, and taking them out
files.py     files of a build: open to the servers' user, on disk, known by their hashes
unpacking.py archives that others have packed, checked and without privileges
inspect.py   what a bin directory holds
provide.py   all of it together: names in, builds out
"""
