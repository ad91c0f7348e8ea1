#!/usr/bin/env bash
# Underlay compared with the load generators found on this host, on the same servers, in turn (A B B A). Writes
# target/bench/peers-*.json. What is not installed is named and skipped. Run by `make bench-peers`.
#
# BENCH_SECONDS (10), BENCH_USERS (8), BENCH_TABLES (4), BENCH_TABLE_SIZE (100000), BENCH_WAREHOUSES (4),
# BENCH_SCRIPTS (read_write,point_select), BENCH_ENGINES ("postgresql mariadb"), BENCH_ONLY (all; names of peers
# with commas: sysbench,pgbench,fio,go-tpc,hammerdb,benchbase). HAMMERDB_HOME and BENCHBASE_HOME name the folders of
# those that are not on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/bench
mkdir -p "$out"
examples=target/release/examples
seconds=${BENCH_SECONDS:-10}
no_server=69
only=${BENCH_ONLY:-}

for engine in ${BENCH_ENGINES:-postgresql mariadb}; do
  echo "== databases: $engine"
  status=0
  "$examples/with_server" --engine "$engine" -- "$examples/peers" --seconds "$seconds" --users "${BENCH_USERS:-8}" \
    --tables "${BENCH_TABLES:-4}" --table-size "${BENCH_TABLE_SIZE:-100000}" --warehouses "${BENCH_WAREHOUSES:-4}" \
    --scripts "${BENCH_SCRIPTS:-read_write,point_select}" --json "$out/peers-$engine.json" \
    ${only:+--only "$only"} || status=$?
  if [ "$status" = "$no_server" ]; then
    echo "skip: no $engine server programs on this host"
  elif [ "$status" != 0 ]; then
    exit "$status"
  fi
done

case ",${only:-fio}," in *,fio,*)
  echo "== blocks: 4 KiB random reads of one file, io_uring, against fio"
  "$examples/io_cost" --seconds "$seconds" --rounds 1 --frozen 0 --json "$out/peers-block.json"
esac
echo "written: $(echo "$out"/peers-*.json)"
