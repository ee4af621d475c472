// Identifies clients for the rate limits of the console.

import ipaddr from 'ipaddr.js';

/**
 * Returns the IPv4 address of a client, or its IPv6 /64 network, which usually belongs to one client. If `address` is
 * not a valid IP address, returns `address` unchanged, except that recognized brackets and a recognized port are
 * removed.
 *
 * @param address from a socket or from `X-Forwarded-For`; some proxies add a port to the address
 */
export function clientNetwork(address: string): string {
  const [, bracketed, withoutPort] = /^\[(.+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(address) ?? [];
  const host = bracketed ?? withoutPort ?? address;
  if (!ipaddr.isValid(host)) return host;
  const parsed = ipaddr.process(host);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString();
}
