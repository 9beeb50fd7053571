# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the other scripts: where the tree is and how they talk.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n==> %s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit "${2:-1}"
}
# Shows a command, then runs it.
run() {
    printf '$ %s\n' "$*"
    "$@"
}
