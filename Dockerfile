# SPDX-License-Identifier: Apache-2.0
# The steps are those of `make build`, which CI proves. Two images: --target broker (the last) and --target agent.

FROM golang:1.26-bookworm AS build-agent
WORKDIR /src/agents
COPY agents/go.mod agents/go.sum ./
RUN go mod download
COPY agents/cmd ./cmd
COPY agents/internal ./internal
COPY pyproject.toml /src/
COPY packaging/version /src/packaging/
ENV CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false"
RUN go build -trimpath -ldflags "-s -w -X main.version=$(/src/packaging/version)" -o /out/ ./cmd/bwb-agent
# Those that the broker hands out to hosts (GET /v1/agents/download).
RUN for arch in amd64 arm64; do GOOS=linux GOARCH=$arch go build -trimpath -ldflags "-s -w -X main.version=$(/src/packaging/version)" -o /agents/bwb-agent-linux-$arch ./cmd/bwb-agent || exit 1; done

FROM python:3.12-slim-bookworm AS build-broker
WORKDIR /src
RUN python -m venv /opt/bwb && /opt/bwb/bin/python -m pip install --no-cache-dir uv==0.13.8
COPY requirements.lock ./
RUN /opt/bwb/bin/uv pip install --no-cache --python /opt/bwb/bin/python --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md hatch_build.py ./
COPY packaging/dashboard.py ./packaging/
COPY migrations ./migrations
COPY broker ./broker
# Builds the dashboard, too, with Node from a wheel.
RUN /opt/bwb/bin/uv pip install --no-cache --python /opt/bwb/bin/python --no-deps .

# Nothing but the static binary and the authorities that vouch for an https broker.
FROM scratch AS agent
COPY --from=build-agent /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build-agent /out/bwb-agent /bwb-agent
USER 65532:65532
EXPOSE 7411
ENTRYPOINT ["/bwb-agent"]
CMD ["run", "--state-dir", "/state"]

FROM python:3.12-slim-bookworm AS broker
RUN useradd --uid 10001 --create-home --home-dir /home/bwb bwb && install -d -o bwb -g bwb -m 0700 /state
COPY --from=build-broker /opt/bwb /opt/bwb
COPY --from=build-agent /agents /opt/bwb/agents
ENV BWB_AGENT_FILES=/opt/bwb/agents
ENV PATH=/opt/bwb/bin:$PATH PYTHONUNBUFFERED=1 BWB_STATE_DIR=/state NUMBA_CACHE_DIR=/home/bwb/.cache/numba
USER bwb
VOLUME /state
EXPOSE 7410
ENTRYPOINT ["bwb"]
CMD ["up", "--host", "0.0.0.0"]
