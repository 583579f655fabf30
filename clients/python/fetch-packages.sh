#!/usr/bin/env bash
# Unpacks Debian's packages of newer releases that the tests use beside this release's own: pure Python, so they run on
# its interpreter. They are found in node_modules/.cache/python; apt's own state stays as it is.
set -euo pipefail
cache=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/node_modules/.cache/python
[ -e "$cache/complete" ] && exit
rm -rf "$cache"
mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial" "$cache/debs"

# The machine's own source of Debian, with other suites.
source=$(grep -lE '^URIs: \S*/debian/?$' /etc/apt/sources.list.d/*.sources | head -1)
sed -n '/^Types:/,/^$/p' "$source" | awk 'NF == 0 { exit } { print }' |
  sed 's/^Suites: .*/Suites: bookworm-backports trixie/' >"$cache/debian.sources"
options=(-o "Dir::Etc::sourcelist=$cache/debian.sources" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update
cd "$cache/debs"
django=$(apt-cache "${options[@]}" madison python3-django | awk '/bookworm-backports/ { print $3; exit }')
apt-get "${options[@]}" download "python3-django=$django" python3-asgiref python3-sqlparse python3-sqlalchemy \
  python3-typing-extensions python3-psycopg python3-httpx python3-httpcore

unpack() { # a folder, and the packages in it
  local folder=$1 package
  shift
  for package in "$@"; do dpkg-deb -x "$package"_*.deb "$cache/unpacked"; done
  mkdir -p "$cache/$folder"
  cp -r "$cache"/unpacked/usr/lib/python3/dist-packages/. "$cache/$folder"
  rm -r "$cache/unpacked"
}
unpack frameworks python3-django python3-asgiref python3-sqlparse python3-sqlalchemy python3-typing-extensions python3-psycopg
unpack httpx python3-httpx python3-httpcore
rm -r "$cache/apt" "$cache/debs"
touch "$cache/complete"
