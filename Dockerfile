# syntax=docker/dockerfile:1

# Images of replayd. The default one is a static binary in an empty root:
#
#   docker build -t replayd .
#   docker run --rm -p 127.0.0.1:9797:9797 replayd demo --web.listen-address :9797
#
# dcgm has a C library besides, and can read an nv-hostengine through libdcgm.so.4; deploy/README.md says where that comes from:
#
#   docker build --target dcgm -t replayd:dcgm .
#
# Both for two platforms, with a bill of materials; the Makefile's image-push gives the build arguments too:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --push -t REGISTRY/replayd .
#
# The root is scratch, not distroless/static: of what that has, this needs certificates, a user and /tmp. Zones of time are in the
# binary (time/tzdata). So there is no base to keep up to date, and a scanner finds Go's modules and nothing else.

ARG GO_VERSION=1.26

# Compiled on the machine's own platform for the other: Go needs no emulation for that.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-trixie AS source
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
COPY internal internal
# The runbook, which the binary serves.
COPY docs/reference docs/reference
# Folders with a mode and an owner of their own. COPY keeps those of what is in a folder, not of the folder itself.
RUN install -d -m 1777 /out/top/tmp && install -d -m 0750 /out/lib/replayd

# The flags are those of `make build`: the same commit and the same Go give the same bytes.
FROM source AS build
ARG TARGETOS TARGETARCH
ARG VERSION=0.0.0-dev REVISION=unknown BRANCH=unknown DATE=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -buildvcs=false -trimpath -ldflags "\
-X github.com/prometheus/common/version.Version=$VERSION \
-X github.com/prometheus/common/version.Revision=$REVISION \
-X github.com/prometheus/common/version.Branch=$BRANCH \
-X github.com/prometheus/common/version.BuildDate=$DATE" -o /out/replayd ./cmd/replayd

FROM source AS build-dcgm
ARG TARGETOS TARGETARCH
ARG VERSION=0.0.0-dev REVISION=unknown BRANCH=unknown DATE=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags dcgm -buildvcs=false -trimpath -ldflags "\
-X github.com/prometheus/common/version.Version=$VERSION \
-X github.com/prometheus/common/version.Revision=$REVISION \
-X github.com/prometheus/common/version.Branch=$BRANCH \
-X github.com/prometheus/common/version.BuildDate=$DATE" -o /out/replayd ./cmd/replayd

# libdcgm.so.4 is C++: distroless/cc has glibc, libstdc++ and libgcc, and certificates, zones and the user of that number too.
# The library itself is NVIDIA's, of the host: mount it to /usr/lib/libdcgm.so.4, where every platform's loader looks.
FROM gcr.io/distroless/cc-debian13:nonroot AS dcgm
ARG VERSION=0.0.0-dev REVISION=unknown
LABEL org.opencontainers.image.title="replayd" \
      org.opencontainers.image.description="Replays LLM request traces against an OpenAI-compatible server and puts what a client sees on /metrics; with libdcgm" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The replayd Authors" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian13:nonroot" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build-dcgm /out/replayd /usr/bin/replayd
COPY --from=source --chown=65532:65532 /out/lib/ /var/lib/
COPY LICENSE NOTICE /usr/share/doc/replayd/
USER 65532:65532
EXPOSE 9797
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --start-interval=1s --retries=3 CMD ["/usr/bin/replayd", "health"]
ENTRYPOINT ["/usr/bin/replayd"]
CMD ["serve", "--config", "/etc/replayd/replayd.yaml"]

# The default target is the last stage.
FROM scratch AS replayd
ARG VERSION=0.0.0-dev REVISION=unknown
LABEL org.opencontainers.image.title="replayd" \
      org.opencontainers.image.description="Replays LLM request traces against an OpenAI-compatible server and puts what a client sees on /metrics" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The replayd Authors" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY <<EOF /etc/passwd
nonroot:x:65532:65532:replayd:/var/lib/replayd:/sbin/nologin
EOF
COPY <<EOF /etc/group
nonroot:x:65532:
EOF
COPY --from=source /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# /tmp is for `demo` and for compressed traces, /var/lib/replayd for records: a named volume there takes its owner and mode.
COPY --from=source /out/top/ /
COPY --from=source --chown=65532:65532 /out/lib/ /var/lib/
COPY LICENSE NOTICE /usr/share/doc/replayd/
COPY --from=build /out/replayd /usr/bin/replayd
# The number, not the name: with runAsNonRoot a kubelet cannot tell what a name stands for.
USER 65532:65532
EXPOSE 9797
# It asks 127.0.0.1:9797. Where web.listen is another, or has TLS or a password, give the command an address and --http.config.file.
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --start-interval=1s --retries=3 CMD ["/usr/bin/replayd", "health"]
ENTRYPOINT ["/usr/bin/replayd"]
CMD ["serve", "--config", "/etc/replayd/replayd.yaml"]
