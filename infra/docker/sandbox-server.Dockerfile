# The sandbox server. NODE_IMAGE is any Debian-family image with Node 20.19 or newer. Hosts are not containers: they run
# `npx rolldeck sandbox-host` beside the Docker daemon that they offer. To be reached from outside it needs `--host 0.0.0.0` and
# `--tls-cert` with `--tls-key`, as arguments.
ARG NODE_IMAGE=node:22-bookworm-slim
FROM ${NODE_IMAGE}

WORKDIR /rolldeck
COPY package.json package-lock.json turbo.json tsconfig.base.json ./
COPY apps apps
COPY packages packages
COPY prisma prisma
RUN node -e "import('./apps/cli/bin/ensure-installed.mjs').then((install) => install.ensureInstalled())" \
 && node apps/cli/bin/rolldeck.mjs sandbox-server --help \
 && node -e "import('./apps/cli/bin/build-servers.mjs').then(({ buildServers }) => buildServers(['sandbox-server']))" \
 && useradd --system --create-home --home-dir /data --shell /usr/sbin/nologin rolldeck \
 && chown -R rolldeck:rolldeck /data

USER rolldeck
VOLUME /data
EXPOSE 4480
ENTRYPOINT ["node", "--enable-source-maps", "apps/sandbox-server/dist/main.mjs", "--state-folder", "/data", "--token-file", "/data/tokens"]
