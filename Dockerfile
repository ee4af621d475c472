# BuildKit is not required: `docker build`, Podman, Buildah and kaniko can all build this image.
FROM node:26-slim AS build
WORKDIR /build
COPY package.json package-lock.json tsconfig.json tsconfig.build.json ./
RUN npm ci --ignore-scripts
COPY src ./src
COPY packaging ./packaging
RUN node packaging/build.ts && npm prune --omit=dev --ignore-scripts

FROM node:26-slim
WORKDIR /app
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    DATABASE_URL=file:/data/scrip.db \
    SQLITE_TMPDIR=/data
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
RUN mkdir /data && chown 1000:1000 /data && ln -s /app/dist/main.js /usr/local/bin/scrip
# The image's user `node`, as a number: for `runAsNonRoot`, Kubernetes does not look up names.
USER 1000:1000
VOLUME ["/data"]
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]
