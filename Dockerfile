# Recto in a container: as a user without rights, data in /data, configured by RECTO_ variables.
FROM node:24-bookworm-slim AS web
WORKDIR /src/web
COPY web ./
RUN npm ci && npm run build

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY requirements-image.lock requirements-build.lock ./
# What builds the packages stays behind in an environment of its own.
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock \
    && /opt/build/bin/pip wheel --no-cache-dir --require-hashes --no-build-isolation --wheel-dir /opt/wheels -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY --from=web /src/src/recto/web ./src/recto/web
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/wheels . \
    && python -m venv /opt/recto \
    && /opt/recto/bin/pip install --no-cache-dir --no-index --find-links /opt/wheels "recto[all]"

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --create-home recto && install -d -m 700 -o recto -g recto /data
COPY --from=build /opt/recto /opt/recto
ENV PATH=/opt/recto/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    RECTO_HOST=0.0.0.0 \
    RECTO_PORT=8787 \
    RECTO_DATA=/data \
    RECTO_LOG_FORMAT=json
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"RECTO_PORT\"]}/readyz', timeout=2)"]
# Without RECTO_API_KEYS or a RECTO_JWT_ setting it does not start: an open address needs accounts.
ENTRYPOINT ["recto"]
CMD ["serve"]
