// Resolves the host names of endpoints.

import { lookup, Resolver } from 'node:dns/promises';
import { setTimeout } from 'node:timers/promises';
import { type AddressRules, isLoopbackName } from './addresses.ts';

const TIMEOUT_MS = 5_000;
const TRIES = 2;
/** How long to wait for the IPv6 addresses after the IPv4 addresses have arrived, or the other way round. */
const OTHER_ADDRESSES_MS = 500;

/**
 * Asks the DNS servers directly. `lookup` would occupy a thread of Node's small thread pool until the DNS servers of a
 * customer respond, and so delay the webhooks of other customers and the connections to the database.
 */
export class HostNames {
  readonly #rules: Pick<AddressRules, 'allowPrivate'>;
  readonly #servers: readonly string[] | null;
  readonly #active = new Set<Resolver>();

  /** @param servers replaces the DNS servers of the operating system in tests */
  constructor(rules: Pick<AddressRules, 'allowPrivate'>, servers: readonly string[] | null = null) {
    this.#rules = rules;
    this.#servers = servers;
  }

  /** Returns the IPv4 and IPv6 addresses of a host. Rejects if the host has no address. */
  async addressesOf(hostname: string): Promise<readonly string[]> {
    // Only `lookup` knows the names that are not in the DNS, such as those in /etc/hosts.
    if (this.#rules.allowPrivate || isLoopbackName(hostname)) {
      const found = await lookup(hostname, { all: true });
      return found.map(({ address }) => address);
    }
    // A resolver reads the addresses of the DNS servers only once, so each call needs a new one.
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (this.#servers !== null) resolver.setServers(this.#servers);
    this.#active.add(resolver);
    const addresses: string[] = [];
    const queries = [resolver.resolve4(hostname), resolver.resolve6(hostname)].map(async (found) => {
      addresses.push(...(await found));
    });
    try {
      await Promise.any(queries);
      // Some DNS servers never answer queries for IPv6 addresses.
      await Promise.race([Promise.allSettled(queries), setTimeout(OTHER_ADDRESSES_MS, undefined, { ref: false })]);
    } catch (error) {
      throw (error as AggregateError).errors[0];
    } finally {
      resolver.cancel();
      this.#active.delete(resolver);
    }
    return addresses;
  }

  /** Ends all queries. Their promises reject. */
  close(): void {
    for (const resolver of this.#active) resolver.cancel();
  }
}
