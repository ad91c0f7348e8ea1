#!/usr/bin/env bash
# Runs the tests that `make test` has built. Most run in processes of their own. The integration tests of
# database mostly wait for their servers, so one process runs them, a few at a time, beside the others. Its
# output follows at the end.
set -euo pipefail
cargo=${CARGO:-cargo}
of_all=(--locked --workspace --lib --bins --tests)
shared=underlay-database::it

binary=$("$cargo" nextest list "${of_all[@]}" --list-type binaries-only --message-format json \
  | node -e '
      const { "rust-binaries": binaries } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
      console.log(binaries[process.argv[1]]["binary-path"]);
    ' "$shared")
output=$(mktemp)
in_one_process=
# In the background Ctrl-C is not heard.
trap '[ -z "$in_one_process" ] || kill "$in_one_process" 2>/dev/null || true; rm -f "$output"' EXIT

# shellcheck disable=SC2086
(cd crates/database && exec ${SUDO:-env} PATH="$PATH" "$binary") >"$output" 2>&1 &
in_one_process=$!
failed=0
"$cargo" nextest run "${of_all[@]}" --no-fail-fast -E "not binary_id($shared)" || failed=$?
wait "$in_one_process" || failed=$?
in_one_process=
echo "all tests of $shared in one process:"
cat "$output"
echo "not run here, because they take long: published_studies (make soak runs them)"
exit "$failed"
