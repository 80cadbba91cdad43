# The pages are built, packed into a wheel with the server, and the wheel is all that the image gets.
FROM node:22-slim AS pages
WORKDIR /src
COPY frontend/package.json frontend/package-lock.json frontend/
RUN npm --prefix frontend ci --no-audit --no-fund
COPY frontend frontend
COPY templates templates
COPY sessions/marks.json sessions/marks.json
RUN npm --prefix frontend run build

FROM python:3.12-slim AS wheel
WORKDIR /src
RUN pip install --no-cache-dir build
COPY . .
COPY --from=pages /src/contextlab/static contextlab/static
# The commit that this is built from, for the version: git's folder is not copied.
ARG CONTEXTLAB_COMMIT
# One version per package, as locked; the hashes are of files for every platform.
RUN python -m build --wheel \
    && sed -n 's/^\([A-Za-z0-9_.-]*==[^ ;]*\).*/\1/p' requirements.lock > dist/constraints.txt

FROM python:3.12-slim
# pg_dump and pg_restore, for `contextlab backup`, `restore`, and the backup before a migration.
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-client \
    && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /src/dist /tmp/dist
RUN pip install --no-cache-dir -c /tmp/dist/constraints.txt "$(ls /tmp/dist/*.whl)[postgres,redis,sso,s3,anthropic]" \
    && rm -r /tmp/dist \
    && useradd --create-home contextlab \
    && install -d -m 700 -o contextlab /data /data/backups
USER contextlab
ENV CONTEXTLAB_DATA_DIR=/data CONTEXTLAB_HOST=0.0.0.0 PORT=8765
VOLUME /data
EXPOSE 8765
ENTRYPOINT ["contextlab"]
CMD ["serve"]
