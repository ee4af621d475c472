// Selects the environment variables that npm needs to reach its registry.

const NETWORK =
  /^(npm_config_(registry|cache|userconfig|globalconfig|cafile|(https_)?proxy)|NODE_EXTRA_CA_CERTS|https?_proxy)$/i;

export function npmNetwork(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => NETWORK.test(name)));
}
