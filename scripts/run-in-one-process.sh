#!/usr/bin/env bash
# Runs all tests of one test binary in a single process, for tests that share what they loaded. The
# binary is the one that nextest built for the whole workspace: building its package alone would
# choose other features of the dependencies, and compile most of them once more.
set -euo pipefail
binary_id=${1:?usage: scripts/run-in-one-process.sh PACKAGE::BINARY MANIFEST_DIR}
directory=${2:?usage: scripts/run-in-one-process.sh PACKAGE::BINARY MANIFEST_DIR}
binary=$("${CARGO:-cargo}" nextest list --locked --workspace --lib --bins --tests \
  --list-type binaries-only --message-format json \
  | node -e '
      const { "rust-binaries": binaries } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
      console.log(binaries[process.argv[1]]["binary-path"]);
    ' "$binary_id")
cd "$directory"
echo "running all tests of $binary_id in one process"
exec "$binary"
