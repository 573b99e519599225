"""PostgreSQL binaries: ready-made builds from package registries, and builds from source.

model.py           builds, and orders for builds from source
provide.py         builds for all servers of a study; builds in the cache
families.py        sources of ready-made builds
ready_made.py      available versions, the family that serves all arms, installation
zonky_client.py    the Maven client, a process of its own
orders.py          from server names to build orders
tarballs.py        source tarballs: contents, downloads, the cache
debian.py          source by way of the machine's own apt
source_tree.py     source trees and commits on this host
build_commands.py  configure, make, meson, and what they need
compile.py         running them
unpacking.py       archives, checked and without privileges
inspect.py         programs, libraries and files of a build
"""
