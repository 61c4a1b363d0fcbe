# The image holds one static binary and the roots of trust. There is no shell
# in it, and it does not run as root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN ["go", "mod", "download"]
COPY . .
ENV CGO_ENABLED=0
RUN ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", "/out/broker", "./cmd/broker"]

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/broker /usr/local/bin/broker
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/broker"]
CMD ["serve"]
