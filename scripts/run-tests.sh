#!/usr/bin/env bash
# Runs the tests that `make test` has built. Most run in processes of their own. The integration tests of
# database mostly wait for their servers, so one process runs them, a few at a time, beside the others. Its
# output follows at the end.
#
# Most of the time is that of tests with real servers. A run takes a third of them, with every commit the next
# third; ALL=1 runs all.
set -euo pipefail
cargo=${CARGO:-cargo}
of_all=(--locked --workspace --lib --bins --tests)
shared=underlay-database::it
# What takes turns, and its share. One test of whole studies and everything else always run.
long='(package(underlay) & kind(test) & test(/^(causal_check|cluster_faults|drive_by_url|mariadb|power_cut)::/))
  | (package(underlay) & kind(test) & test(/^(reproduce|simulated_study|sizing|study_[a-z]+)::/))
  | (package(underlay-driver) & kind(test) & test(/^(dvdstore|mariadb|postgres|sysbench)::/))'
shares=3

binary=$("$cargo" nextest list "${of_all[@]}" --list-type binaries-only --message-format json \
  | node -e '
      const { "rust-binaries": binaries } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
      console.log(binaries[process.argv[1]]["binary-path"]);
    ' "$shared")
names() { # names [OPTION...]: the long tests, one per line
  "$cargo" nextest list "${of_all[@]}" --message-format oneline -E "$long" "$@" | cut -d' ' -f2
}
selected="not binary_id($shared)"
in_process=()
left_out=
if [ -z "${ALL:-}" ]; then
  turn=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % shares + 1))
  due=$(names --partition "count:$turn/$shares")
  selected="$selected & (not ($long)$(printf ' | test(=%s)' $due))"
  in_process=(tpcc:: --skip mariadb::)
  [ "$turn" = 2 ] && in_process=(mariadb::)
  [ "$turn" = 3 ] && in_process=(jobs:: killed_owner:: managed_server:: tls::)
  left_out="$(($(names | wc -l) - $(wc -w <<<"$due"))) tests of studies and drives, and of $shared all but its turn $turn"
fi
output=$(mktemp)
in_one_process=
# In the background Ctrl-C is not heard.
trap '[ -z "$in_one_process" ] || kill "$in_one_process" 2>/dev/null || true; rm -f "$output"' EXIT

# shellcheck disable=SC2086
(cd crates/database && exec ${SUDO:-env} PATH="$PATH" "$binary" "${in_process[@]}") >"$output" 2>&1 &
in_one_process=$!
failed=0
"$cargo" nextest run "${of_all[@]}" --no-fail-fast -E "$selected" || failed=$?
wait "$in_one_process" || failed=$?
in_one_process=
echo "tests of $shared in one process:"
cat "$output"
echo "not run here, because they take long: published_studies (make soak runs them)"
[ -z "$left_out" ] || echo "not run with this commit: $left_out (the next two run them; make test ALL=1 runs all)"
exit "$failed"
