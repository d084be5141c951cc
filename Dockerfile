# Recto in a container: as a user without rights, data in /data, configured by RECTO_ variables.
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock requirements-build.lock ./
RUN python -m venv /opt/recto && /opt/recto/bin/pip install --no-cache-dir --require-hashes -r requirements.lock -r requirements-build.lock
COPY src ./src
RUN /opt/recto/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --create-home recto && install -d -o recto -g recto /data
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
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/readyz', timeout=2)"]
# Without RECTO_API_KEYS or a RECTO_JWT_ setting it does not start: an open address needs accounts.
ENTRYPOINT ["recto"]
CMD ["serve"]
