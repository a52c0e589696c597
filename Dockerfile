# SPDX-License-Identifier: Apache-2.0
# Builds the packages and installs them in a fresh system, which runs the demonstration:
#
#   docker build -t leeway .
#   docker run --rm -v "$PWD/demo:/data" leeway demo --output-dir /data/demo
#
# Any other command likewise: docker run --rm leeway help
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN ./run package

FROM debian:12-slim
COPY --from=build /src/build-deb/leeway_*.deb /tmp/
RUN apt-get update \
    && apt-get install -y --no-install-recommends /tmp/leeway_*.deb \
    && rm -rf /tmp/leeway_*.deb /var/lib/apt/lists/*
RUN leeway check --filter gemm
ENV LW_CACHE=/data/cache
WORKDIR /data
ENTRYPOINT ["leeway"]
CMD ["demo", "--output-dir", "/data/demo"]
