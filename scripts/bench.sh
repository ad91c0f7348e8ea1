#!/usr/bin/env bash
# The project's promises as ratios, each measured in one run against its peer in turn (A B B A). Writes
# target/bench/*.json. Peers that are not installed are named and skipped. Run by `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/bench
mkdir -p "$out"
examples=target/release/examples
warehouses=${BENCH_WAREHOUSES:-10}
seconds=${BENCH_SECONDS:-20}

echo "== load: against COPY of the same rows from pre-generated files"
"$examples/load_rate" --json "$out/load-rate.json"

echo "== load on MariaDB: against LOAD DATA INFILE of the same rows from pre-generated files"
"$examples/mariadb_load_rate" --json "$out/mariadb-load-rate.json"

echo "== driver cost: CPU-seconds of the driver per 10,000 new orders, against go-tpc"
peer=()
if go_tpc=$(command -v go-tpc); then
  peer=(--go-tpc "$go_tpc" --go-tpc-warehouses "$warehouses")
else
  echo "skip: no go-tpc on PATH, the cost is measured alone"
fi
export warehouses seconds out examples
# shellcheck disable=SC2016
"$examples/with_server" -- bash -euo pipefail -c '
  if [ $# -gt 0 ]; then
    export PGPASSWORD=$BENCH_PASSWORD
    psql -q -h "$BENCH_HOST" -p "$BENCH_PORT" -U "$BENCH_USER" -d postgres -c "CREATE DATABASE gotpc"
    "$2" tpcc prepare --no-check -d postgres -H "$BENCH_HOST" -P "$BENCH_PORT" -U "$BENCH_USER" -p "$PGPASSWORD" \
      -D gotpc --conn-params sslmode=disable --warehouses "$warehouses" -T 4 >/dev/null
  fi
  for mode in procedures statements; do
    load=(); [ "$mode" = procedures ] && load=(--load "$warehouses")
    "$examples/driver_cost" --url "$BENCH_URL" --mode "$mode" --users 8 --seconds "$seconds" "${load[@]}" "$@" \
      | tee "$out/driver-cost-$mode.json"
  done
  "$examples/sysbench_cost" --url "$BENCH_URL" --prepare | tee "$out/sysbench-load.json"
  "$examples/sysbench_cost" --url "$BENCH_URL" --load --seconds "$seconds" | tee "$out/sysbench-cost.json"
  "$examples/many_clients" --url "$BENCH_URL" --seconds "$seconds" --warm-up 20 | tee "$out/many-clients.json"
  "$examples/thousand_users" --url "$BENCH_URL" --seconds "$seconds" --key-think 0.05 | tee "$out/thousand-users.json"
' bench "${peer[@]}"

echo "== driver cost on MariaDB: CPU-seconds of the driver per 10,000 new orders; per sysbench transaction; loads against sysbench prepare"
# shellcheck disable=SC2016
"$examples/with_server" --engine mariadb -- bash -euo pipefail -c '
  if [ $# -gt 0 ]; then
    "$2" tpcc prepare --no-check -d mysql -H "$BENCH_HOST" -P "$BENCH_PORT" -U "$BENCH_USER" -p "$BENCH_PASSWORD" \
      -D gotpc --warehouses "$warehouses" -T 4 >/dev/null
  fi
  for mode in procedures statements; do
    load=(); [ "$mode" = procedures ] && load=(--load "$warehouses")
    "$examples/driver_cost" --url "$BENCH_URL" --mode "$mode" --users 8 --seconds "$seconds" "${load[@]}" "$@" \
      | tee "$out/mariadb-driver-cost-$mode.json"
  done
  "$examples/sysbench_cost" --url "${BENCH_URL%/*}/sbtest" --prepare | tee "$out/mariadb-sysbench-load.json"
  "$examples/sysbench_cost" --url "${BENCH_URL%/*}/sbtest" --load --seconds "$seconds" | tee "$out/mariadb-sysbench-cost.json"
' bench "${peer[@]}"

echo "== 15,000 clients with think times over 32 connections, with nothing behind them"
"$examples/many_clients" --seconds "$seconds" --warm-up 20 | tee "$out/many-clients-alone.json"

echo "== export cost: null profile through FUSE + loop + ext4, against nbdkit + nbdfuse on the same path"
"$examples/export_cost" --json "$out/export-cost.json"

echo "== emulation fidelity: modelled against observed latency of each profile, fio as judge"
"$examples/fidelity" --json "$out/fidelity.json"

echo "== cluster cost: null profiles without and with a mirror, against the single device and nbdkit + nbdfuse"
"$examples/cluster_cost" --json "$out/cluster-cost.json"

echo "== cluster fidelity: emulated against simulated clusters, fio as judge"
"$examples/cluster_fidelity" --json "$out/cluster-fidelity.json"

echo "== memory of the emulator: volumes written from end to end"
"$examples/emulator_memory" --gib "${BENCH_MEMORY_GIB:-4}" --json "$out/emulator-memory.json"

echo "== block load generator: requests per second, processor time and percentiles, against fio with io_uring"
"$examples/io_cost" --json "$out/io-cost.json"

echo "== error rates: studies of equal designs, and of a device slowed by a known factor (about 100 s each)"
"$examples/error_rates" --studies "${BENCH_STUDIES:-40}" --power-studies "${BENCH_POWER_STUDIES:-20}" \
  --json "$out/error-rates.json"

echo "== named bottlenecks: induced ones against the names that studies give, with the causal check"
"$examples/confusion" --program target/release/underlay --seeds "${BENCH_SEEDS:-5}" --json "$out/confusion.json"

echo "== time dilation: answers at the factors 1, 2, 4, 8 on a device that this host emulates in real time"
for engine in postgresql mariadb; do
  for limit in storage cpu; do
    "$examples/time_dilation" --engine "$engine" --limit "$limit" \
      --json "$out/time-dilation-$engine-$limit.json"
  done
done

echo "== the quickstart with a third design that has no delay: NVMe must stay clearly below it"
{
  cat crates/study/builtin/studies/quickstart.toml
  printf '\n[[design]]\nuse = "null"\n'
} >"$out/quickstart-null.toml"
rm -rf "$out/quickstart-null.sqlite"
target/release/underlay run "$out/quickstart-null.toml" --out "$out/quickstart-null.sqlite" --no-progress --json \
  >"$out/quickstart-null.json"

echo "== virtual time: simulated I/Os and transactions per CPU-second, full write buffers, shares of resync"
for program in simulation_rate cluster_speed engine_speed filling_buffer resync_shares; do
  "$examples/$program" | tee "$out/${program//_/-}.txt"
done

echo "== generator: rows of the population per CPU-second"
"$examples/generate_rate" | tee "$out/generate-rate.txt"

echo "== cost of observing: CPU time of the samplers beside a server with 64 sessions"
# shellcheck disable=SC2016
"$examples/with_server" -- bash -euo pipefail -c '
  "$examples/driver_cost" --url "$BENCH_URL" --load 2 --users 64 --seconds 1 >/dev/null
  "$examples/driver_cost" --url "$BENCH_URL" --users 64 --seconds "$((seconds + 2))" >/dev/null &
  "$examples/cost" "$seconds" "$BENCH_URL" | tee "$out/observing-cost.txt"
  wait
'

echo "== predictions: two designs predicted from the record of a third, against their own measurement"
for workload in tpcc sysbench dvdstore; do
	"$examples/prediction_error" --repeats 3 --measure 20 --workload "$workload" \
		--json "$out/prediction-error-$workload.json"
done

echo "written: $(echo "$out"/*.json)"
