"""A study measured by many hosts, through a Dask cluster. Imported only for `--fleet` and `pgversus fleet`.

certificates.py   the certificate authority of a fleet, and the certificates of its hosts
connection.py     addresses, encryption, and the configuration of Dask
setup_files.py    the contents of setup files, which hosts do not have
messages.py       what the driver and the hosts send each other
load_work.py      load that a host sends to external servers, at the same time as other hosts
host_work.py      tasks of a host, executed on it
worker.py         the program that lends a host to a fleet
scheduler.py      the program through which driver and hosts find each other
fleet.py          a connection to a fleet: its hosts, tasks and replies
fleet_hosts.py    the hosts as the engine sees them
load_fleet.py     the hosts that send load to one server at once
fleet_study.py    a study opened on a fleet
"""
