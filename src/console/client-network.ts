// Identifies clients for the console's rate limits.

import ipaddr from 'ipaddr.js';

/**
 * Returns the IPv4 address of a client, or its IPv6 /64 network, which usually belongs to one client. If `address` is
 * not a valid IP address, returns it unchanged, or without its brackets and port if the pattern below matches.
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
