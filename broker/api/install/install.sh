#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs bwb-agent on this host and makes the host known to the broker at @BROKER@:
#
#   curl -fsS @BROKER@/v1/agents/install.sh | BWB_ENROLMENT_TOKEN=bwe_... sudo --preserve-env=BWB_ENROLMENT_TOKEN sh -s -- --advertise HOST:7411 --tls
#
# What follows `--` goes to `bwb-agent enrol`. The one-time token stays out of the command line, which everybody on the host can read.
# Without a token it installs, or brings up to date, and leaves the rest as it is. BWB_BROKER is another address of the broker, BWB_CA_FILE a PEM
# file of its authorities. BWB_ROOT is a folder to install below, without root, users or service: for a look at what it does.
set -eu

main() {
  broker=${BWB_BROKER:-@BROKER@}
  root=${BWB_ROOT:-}
  binary=/usr/local/bin/bwb-agent
  state=/var/lib/bwb
  configuration=/etc/bwb-agent.toml
  unit=/etc/systemd/system/bwb-agent.service

  [ -n "$root" ] || [ "$(id -u)" = 0 ] || fail "run me as root (sudo), or with BWB_ROOT=FOLDER for a trial"
  [ -n "$root" ] || [ ! -e /usr/bin/bwb-agent ] || fail "bwb-agent is installed as a package here: bring it up to date as one, and enrol with
  BWB_ENROLMENT_TOKEN=... runuser -u bwb -- bwb-agent enrol --broker $broker --state-dir $state --advertise HOST:7411 --tls"
  platform=$(platform)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  say "downloading the agent for $platform from $broker"
  fetch "$broker/v1/agents/download/$platform" "$work/bwb-agent-$platform"
  fetch "$broker/v1/agents/download/$platform.sha256" "$work/sum"
  (cd "$work" && sha256sum -c sum >/dev/null 2>&1) || fail "the agent's SHA-256 is not the one that the broker names: nothing was installed"

  account
  folders
  # The new file takes the old one's place in one step; an agent that runs keeps the one it was started from.
  install -m 0755 "$work/bwb-agent-$platform" "$root$binary.new"
  mv -f "$root$binary.new" "$root$binary"
  say "installed $root$binary, version $("$root$binary" version)"
  [ -e "$root$configuration" ] || configuration | sed "s|\"/|\"$root/|" >"$root$configuration"
  enrol "$@"
  service
}

say() { echo "bwb-agent: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

platform() {
  [ "$(uname -s)" = Linux ] || fail "there is an agent for Linux only, this is $(uname -s)"
  case "$(uname -m)" in
  x86_64 | amd64) echo linux-amd64 ;;
  aarch64 | arm64) echo linux-arm64 ;;
  *) fail "there is no agent for $(uname -m), only for x86_64 and aarch64" ;;
  esac
}

fetch() { # URL FILE
  if command -v curl >/dev/null; then
    curl -fsS --retry 3 ${BWB_CA_FILE:+--cacert "$BWB_CA_FILE"} -o "$2" "$1" || fail "cannot download $1"
  elif command -v wget >/dev/null; then
    wget -q ${BWB_CA_FILE:+--ca-certificate="$BWB_CA_FILE"} -O "$2" "$1" || fail "cannot download $1"
  else
    fail "needs curl or wget"
  fi
}

account() {
  [ -z "$root" ] || return 0
  if ! getent passwd bwb >/dev/null; then
    useradd --system --user-group --home-dir "$state" --no-create-home --shell /usr/sbin/nologin bwb || fail "cannot make the user bwb"
  fi
}

folders() {
  owner=
  [ -n "$root" ] || owner="-o bwb -g bwb"
  mkdir -p "$root$(dirname "$binary")" "$root$(dirname "$configuration")" "$root$(dirname "$unit")"
  # shellcheck disable=SC2086 # two options or none
  install -d $owner -m 0700 "$root$state"
  # shellcheck disable=SC2086
  [ -d "$root/srv/bwb" ] || install -d $owner -m 0750 "$root/srv/bwb" "$root/srv/bwb/out" "$root/srv/bwb/in"
}

enrol() {
  if [ -z "${BWB_ENROLMENT_TOKEN:-}" ]; then
    [ -e "$root$state/credentials.json" ] || say "no BWB_ENROLMENT_TOKEN: installed, but not enrolled"
    return 0
  fi
  advertised=no
  for option in "$@"; do
    case "$option" in --advertise | --advertise=*) advertised=yes ;; esac
  done
  [ "$advertised" = yes ] || set -- "$@" --advertise "$(uname -n):7411"
  # As its own user, and the token by standard input: `printf` is part of the shell, so it is on no command line.
  as=
  [ -n "$root" ] || as="runuser -u bwb --"
  # shellcheck disable=SC2086
  printf '%s\n' "$BWB_ENROLMENT_TOKEN" | env -u BWB_ENROLMENT_TOKEN $as "$root$binary" enrol --broker "$broker" --token-file - \
    --state-dir "$root$state" ${BWB_CA_FILE:+--ca-file "$BWB_CA_FILE"} "$@" || fail "the agent is installed, the host is not enrolled"
}

service() {
  if [ -n "$root" ] || [ ! -d /run/systemd/system ]; then
    say "there is no systemd to run it; run it as the user bwb, and again after a reboot:"
    say "  $root$binary run --config $root$configuration"
    return 0
  fi
  unit | sed "s|^ExecStart=/usr/bin/|ExecStart=/usr/local/bin/|" >"$unit"
  systemctl daemon-reload
  systemctl enable --quiet bwb-agent.service
  if [ -e "$state/credentials.json" ]; then
    systemctl restart bwb-agent.service
    say "it runs; systemctl status bwb-agent"
  fi
}

unit() {
  cat <<'END-OF-UNIT'
@UNIT@
END-OF-UNIT
}

configuration() {
  cat <<'END-OF-CONFIGURATION'
@CONFIG@
END-OF-CONFIGURATION
}

main "$@"
