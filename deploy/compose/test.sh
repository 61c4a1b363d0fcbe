#!/usr/bin/env bash
# Brings docker-compose.yml up under a project of its own, waits until all of it
# is healthy, runs the end-to-end suite against it and takes it down again.
#
# Where there is no engine, it starts one for itself if it may (root, dockerd).
# Where an image cannot be pulled, it builds a local stand-in under the same
# tag; the stand-ins are removed again.
#
# Exit codes: 0 passed, 3 no engine can be had here, anything else a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
project=llmbus-test-$$
label=llmbus.stand-in
stand_ins=()
engine_pid=

say() { printf 'compose-test: %s\n' "$*" >&2; }

# --- engine -------------------------------------------------------------------

no_engine() {
  say "NO CONTAINER ENGINE: $*"
  exit 3
}

start_engine() {
  [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null || no_engine "none answers, and dockerd cannot be started by this user"
  export DOCKER_HOST=unix://$work/docker.sock
  say "no engine answers; starting dockerd for this test"
  dockerd --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/docker.pid" \
    >"$work/dockerd.log" 2>&1 &
  engine_pid=$!
  for _ in $(seq 60); do
    docker info >/dev/null 2>&1 && return
    kill -0 "$engine_pid" 2>/dev/null || break
    sleep 0.5
  done
  tail -n 20 "$work/dockerd.log" >&2
  no_engine "dockerd did not start"
}

find_compose() {
  if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
  elif command -v docker-compose >/dev/null; then
    compose=(docker-compose)
  else
    no_engine "neither 'docker compose' nor docker-compose is installed"
  fi
  compose+=(--project-name "$project" --file docker-compose.yml)
}

# --- images -------------------------------------------------------------------

# import <tag> <changes…>: the folder $work/root becomes an image.
import() {
  local tag=$1 changes=(--change "LABEL $label=1")
  shift
  for c in "$@"; do changes+=(--change "$c"); done
  tar -C "$work/root" -c . | docker import "${changes[@]}" - "$tag" >/dev/null
  stand_ins+=("$tag")
  rm -rf "$work/root"
}

with_roots_of_trust() {
  mkdir -p "$work/root/etc/ssl/certs" "$work/root/tmp"
  chmod 1777 "$work/root/tmp"
  cp -L /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/"
}

static_busybox() {
  local found
  if found=$(command -v busybox) && "$found" wget --help >/dev/null 2>&1 && ! ldd "$found" >/dev/null 2>&1; then
    cp "$found" "$1"
    return
  fi
  (cd "$work" && apt-get download busybox-static >/dev/null 2>&1 && dpkg-deb -x busybox-static*.deb busybox)
  cp "$work/busybox/bin/busybox" "$1"
}

stand_in_nats() {
  with_roots_of_trust
  mkdir -p "$work/root/usr/local/bin" "$work/root/bin" "$work/root/data"
  CGO_ENABLED=0 go build -o "$work/root/usr/local/bin/nats-server" github.com/nats-io/nats-server/v2
  static_busybox "$work/root/bin/busybox"
  ln -s busybox "$work/root/bin/wget"
  import "$1" 'ENV PATH=/usr/local/bin:/bin' 'ENTRYPOINT ["nats-server"]'
}

# The toolchain and the modules of this machine, so that the build needs no network.
stand_in_go() {
  local modules
  modules=$(go env GOMODCACHE)
  go mod download
  tar --create --mode='a+rX' \
    --transform="s,^$(go env GOROOT | cut -c2-),usr/local/go," --transform="s,^${modules#/},go/pkg/mod," \
    -C / "$(go env GOROOT | cut -c2-)" "${modules#/}" |
    docker import --change "LABEL $label=1" --change 'ENV PATH=/usr/local/go/bin GOROOT=/usr/local/go GOPATH=/go GOCACHE=/cache GOTMPDIR=/go GOPROXY=off GOFLAGS=-modcacherw' \
      - "$1" >/dev/null
  stand_ins+=("$1")
}

stand_in_distroless() {
  with_roots_of_trust
  import "$1" 'ENV PATH=/usr/local/bin:/usr/bin:/bin' 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' 'USER 65532:65532'
}

# have <image> <how to build its stand-in>
have() {
  docker image inspect "$1" >/dev/null 2>&1 && return
  timeout 300 docker pull --quiet "$1" >/dev/null 2>&1 && return
  say "$1 cannot be pulled; building a stand-in"
  export DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0 # the classic builder takes local images for what they are
  "$2" "$1"
}

# --- run ----------------------------------------------------------------------

tidy_up() {
  local code=$?
  trap - EXIT
  if [ -n "${compose:-}" ]; then
    [ "$code" = 0 ] || "${compose[@]}" logs --no-color --tail 15 >&2 || true
    "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 || true
  fi
  if [ ${#stand_ins[@]} -gt 0 ]; then # with what was built on them, which inherits the label
    docker rmi llmbus/broker:dev "${stand_ins[@]}" >/dev/null 2>&1 || true
    docker image prune --force --filter "label=$label" >/dev/null 2>&1 || true
  fi
  if [ -n "$engine_pid" ]; then
    kill "$engine_pid" 2>/dev/null || true
    wait "$engine_pid" 2>/dev/null || true
  fi
  rm -rf "$work" 2>/dev/null || say "left behind: $work"
  exit "$code"
}

# healthy waits until every container of the project reports health.
healthy() {
  local ids states
  for _ in $(seq 120); do
    ids=$("${compose[@]}" ps -q)
    # shellcheck disable=SC2086 # one word for each container
    states=$(docker inspect --format '{{.State.Health.Status}}' $ids | sort | uniq -c | tr -s ' \n' ' ')
    [ "$states" = " 5 healthy " ] && return
    sleep 0.5
  done
  say "not healthy after a minute:$states"
  return 1
}

trap tidy_up EXIT
docker info >/dev/null 2>&1 || start_engine
find_compose
export NATS_PORT=0 NATS_MONITOR_PORT=0 SIM_PORT=0 # any that are free

have nats:2.15-alpine stand_in_nats
have golang:1.26 stand_in_go
have gcr.io/distroless/static-debian12:nonroot stand_in_distroless

say "building" # once, for both services that use the image
"${compose[@]}" build broker >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; exit 1; }
say "starting"
"${compose[@]}" up --detach --no-build >"$work/up.log" 2>&1 || { tail -n 40 "$work/up.log" >&2; exit 1; }
healthy
say "healthy: one NATS, one provider-sim, three brokers"

COMPOSE_TEST_NATS=nats://$("${compose[@]}" port nats 4222) \
COMPOSE_TEST_SIM=http://$("${compose[@]}" port provider-sim 8090) \
COMPOSE_TEST_BROKERS=$("${compose[@]}" ps -q broker | tr '\n' ' ') \
  go test -tags compose -count=1 -v -run Compose ./e2e
