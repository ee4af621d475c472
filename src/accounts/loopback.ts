// Recognizes requests from the machine that runs Scrip.

const LOOPBACK_HOST = /^(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** Whether this `Host` header shows that the browser connected to its own machine. */
export function isLoopback(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

export function isLoopbackAddress(address: string | undefined): boolean {
  return /^(?:::ffff:)?127\.|^::1$/i.test(address ?? '');
}
