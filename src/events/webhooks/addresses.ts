// Decides which URLs and IP addresses Scrip may send webhooks to. URLs come from customers. Without this check, a
// customer could reach services inside the operator's network. The addresses of a host name can change at any time, so
// request.ts checks them for each new connection.

import ipaddr from 'ipaddr.js';

export interface AddressRules {
  /** Whether private and loopback addresses are allowed. */
  readonly allowPrivate: boolean;
  /**
   * Whether loopback addresses are allowed even without `allowPrivate`. Connections to loopback addresses need no TLS.
   */
  readonly allowLoopback: boolean;
}

export const URL_CHARACTERS_MAX = 2_048;
const LOOPBACK_NAME = /^(?:.+\.)?localhost\.?$/i;
/**
 * The address ranges that `allowPrivate` allows besides loopback. Scrip never sends webhooks to any other
 * special-purpose range, such as link-local addresses, at which cloud providers serve credentials.
 */
const PRIVATE_RANGES = new Set(['private', 'uniqueLocal', 'carrierGradeNat']);
/** All public IPv6 addresses are in this block. ipaddr.js reports the unassigned addresses outside it as `unicast`. */
const PUBLIC_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** @returns a sentence that says why webhooks must not be sent to the URL; null if the URL is allowed */
export function urlProblem(text: string, rules: AddressRules): string | null {
  if (!/^https?:\/\//i.test(text)) return `The URL must begin with ${allowedSchemes(rules)}.`;
  if (!URL.canParse(text)) return 'The URL is not valid. Check the host name and the port.';
  const url = new URL(text);
  if (url.href.length > URL_CHARACTERS_MAX)
    return `The URL must have at most ${URL_CHARACTERS_MAX} characters after URL encoding.`;
  if (url.username !== '' || url.password !== '') return 'The URL must not contain a user name or password.';
  if (url.hash !== '') return 'The URL must not contain a fragment (#…).';
  const host = hostOf(url);
  if (url.protocol === 'http:' && !(allowsLoopback(rules) && isLoopbackHost(host)))
    return `The URL must begin with ${allowedSchemes(rules)}.`;
  if (isLoopbackName(host) && !allowsLoopback(rules)) return 'The URL must not point to the machine that runs Scrip.';
  return ipaddr.isValid(host) ? addressProblem(host, url.protocol, rules) : null;
}

/**
 * @param address an IP address
 * @param protocol `https:` or `http:`
 * @returns a sentence that says why webhooks must not be sent to the address; null if the address is allowed
 */
export function addressProblem(address: string, protocol: string, rules: AddressRules): string | null {
  const range = ipaddr.isValid(address) ? rangeOf(ipaddr.process(address)) : 'invalid';
  if (range === 'loopback' && allowsLoopback(rules)) return null;
  if (protocol !== 'https:') return `The URL must begin with ${allowedSchemes(rules)}.`;
  if (range === 'unicast' || (rules.allowPrivate && PRIVATE_RANGES.has(range))) return null;
  // The sentence omits the address, which could reveal how a host name resolves in the operator's network.
  return 'The IP address of the endpoint is not public.';
}

function rangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  const range = address.range();
  const isUnassigned = range === 'unicast' && address instanceof ipaddr.IPv6 && !address.match(PUBLIC_IPV6);
  return isUnassigned ? 'unassigned' : range;
}

/** The host of a URL without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function allowedSchemes(rules: AddressRules): string {
  return allowsLoopback(rules) ? 'https:// (or http:// for a loopback address)' : 'https://';
}

function allowsLoopback({ allowPrivate, allowLoopback }: AddressRules): boolean {
  return allowPrivate || allowLoopback;
}

/** Whether the host is `localhost` or a name that ends in `.localhost`. */
export function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAME.test(host);
}

function isLoopbackHost(host: string): boolean {
  return isLoopbackName(host) || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback');
}
