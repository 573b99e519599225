"""The host: processes, files, users and measurements of the machine.

commands.py       run a program to completion; abridge long output
processes.py      CPU time and memory of process trees; background threads
processors.py     CPU pinning of clients and servers
pausable.py       a program that can be stopped and continued
lost_time.py      detection of stopped programs, suspends and clock changes
directories.py    the cache, run data, sockets; locks on directories in use
run_directory.py  a run's private directories
guard.py          cleanup after killed runs
permissions.py    private files; handover of files between root and the servers' user
identity.py       the user that servers and programs of a study run as
files.py          hashes, sizes, reflinks, frozen trees
on_disk.py        names that appear when their content is on disk
output_file.py    write a file named by the user
full_disk.py      distinguish a full disk from other failures
facts.py          processor, memory, kernel, file system, fonts
noise.py          how steady the speed of a processor is
counters.py       cumulative host counters: CPU, pressure, disk
page_cache.py     evict files from the page cache, or read them in
"""
