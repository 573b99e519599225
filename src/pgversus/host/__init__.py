"""The machine that runs it all.

commands.py       run a program to its end; keep the first and last part of long output
processes.py      processor time and memory of process trees, background threads
processors.py     which processors clients and servers run on
pausable.py       a program that is stopped and continued
lost_time.py      programs that were stopped, a machine that slept, a clock that was set
directories.py    the cache, a run's data, its sockets; locks on directories in use
run_directory.py  a run's private directories
guard.py          cleans up after runs that were killed
permissions.py    private files, and files that change hands between root and the servers' user
identity.py       the user that servers and studies' programs run as
files.py          hashes, shared blocks, frozen trees
output_file.py    write a file that the user names
full_disk.py      tell a full disk from other failures
facts.py          processor, memory, kernel, file system, fonts
counters.py       what the host has done so far: processors, waiting, disk
page_cache.py     make the kernel forget files, or read them in
"""
