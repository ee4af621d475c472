// Delivers events to webhook endpoints. Every second, the job reads the endpoints, creates a sender for each endpoint
// that is leased to this process, and stores the results of the senders.

import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Selectable } from 'kysely';
import { IntervalJob } from '../../batching/interval-job.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { AccountDatabase, AccountTables } from '../../store/account-database.ts';
import type { EventLog, EventPosition } from '../../store/event-log.ts';
import type { AddressRules } from './addresses.ts';
import { DeliveryQueue } from './delivery-queue.ts';
import { DeliveryStore, type EndpointChanges } from './delivery-store.ts';
import { EndpointSender, type LeasedEndpoint, type SenderOptions } from './endpoint-sender.ts';
import { previousSecretsIn, typesOf } from './endpoints.ts';
import { Leases, type LeaseTerms, type SeenEndpoint } from './leases.ts';
import { type SendRequest, WebhookRequests } from './request.ts';
import { retryDelayMs } from './retry-schedule.ts';
import { type SecretBox, UnusableSecret } from './secrets.ts';
import { SendingGate } from './sending-gate.ts';

/** No log line contains a secret or a request body. */
export interface WebhookLogger {
  warn(fields: object, message: string): void;
}

export interface WebhookOptions {
  readonly database: AccountDatabase;
  readonly events: Pick<EventLog, 'page' | 'latest' | 'positionBefore'>;
  readonly secrets: Pick<SecretBox, 'open'>;
  readonly rules: AddressRules;
  /** The machine's time, even if the ledger has a test clock: receivers check timestamps against their own clocks. */
  readonly now: () => number;
  readonly logger: WebhookLogger;
  readonly userAgent: string;
  /** `SHARED_LEASES`; null if no other process can serve the ledger, as with SQLite. */
  readonly leases: LeaseTerms | null;
  /** Tests replace `request` and `retryDelay`. */
  readonly request?: SendRequest;
  readonly retryDelay?: SenderOptions['retryDelay'];
}

/** Each run deletes old deliveries in at most this many steps. */
const CLEANING_STEPS = 10;
/** The minimum time between two log lines about failures. */
const TROUBLE_MS = 60_000;
/** The time from a call to `nudge` until the senders look for new events. */
const NUDGE_MS = 20;
const UNDECRYPTED =
  'The webhook secret cannot be decrypted. Set WEBHOOK_KEY to the key that encrypted it; if that key is lost, rotate the secret. Then resume the endpoint.';
/** The number of senders that look for new events in one turn of the event loop. */
const SENDERS_PER_TURN = 10;

export class WebhookJob {
  /** The number of delivery attempts by this process, for the metrics. */
  readonly attempts = { delivered: 0, failed: 0 };
  /** The number of paused endpoints of all accounts, for the metrics. */
  pausedEndpoints = 0;
  readonly #options: WebhookOptions;
  readonly #leases: Leases;
  readonly #store: DeliveryStore;
  readonly #gate = new SendingGate();
  readonly #requests: WebhookRequests;
  readonly #job: IntervalJob;
  readonly #senders = new Map<number, EndpointSender>();
  /** Maps the ID of each leased endpoint to the time (`performance.now`) at which its lease was taken or renewed. */
  readonly #leasedAt = new Map<number, number>();
  /** The endpoints that this process could not open. It leases them only after all others. */
  readonly #unopened = new Set<number>();
  #renewedAt = 0;
  /** When the latest run ended in which nothing failed, from `performance.now`. */
  #soundAt = performance.now();
  #latest: EventPosition | null = null;
  #troubleAt = Number.NEGATIVE_INFINITY;
  #cleanedId = 0;
  #nudging: NodeJS.Timeout | null = null;

  constructor(options: WebhookOptions) {
    const { database, leases, rules, userAgent } = options;
    const process = randomUUID();
    this.#options = options;
    this.#leases = new Leases(database, process, leases);
    this.#store = new DeliveryStore(database, process);
    this.#requests = new WebhookRequests({ rules, userAgent });
    this.#job = new IntervalJob((stopping) => this.#run(stopping), this.#onTrouble);
  }

  start(): void {
    this.#gate.start();
    this.#job.start();
  }

  /** Waits briefly for the requests in flight, stores their results, and releases the leases. */
  async stop(): Promise<void> {
    await this.#job.stop();
    if (this.#nudging !== null) clearTimeout(this.#nudging);
    const senders = [...this.#senders.values()];
    for (const sender of senders) sender.drain();
    this.#gate.stop();
    await Promise.all(senders.map((sender) => sender.idle()));
    await this.#flush(true).catch(this.#onTrouble);
    this.#requests.close();
  }

  /** Starts a run now, without waiting for the next second. */
  tick(): Promise<void> {
    return this.#job.tick();
  }

  nudge(): void {
    this.#nudging ??= setTimeout(() => {
      this.#nudging = null;
      void this.#eachSender((sender) => sender.nudge());
    }, NUDGE_MS);
  }

  /**
   * How long ago the senders of this process read their oldest undelivered event from the event log; 0 if there is
   * none. Events from `webhook_pending` count from their first attempt, or not at all if there was none.
   */
  oldestAgeMs(): number {
    const instants = [...this.#senders.values()].map((sender) => sender.oldestAt()).filter((at) => at !== null);
    const oldest = instants.reduce<Instant | null>((min, at) => (min === null || at < min ? at : min), null);
    return oldest === null ? 0 : Math.max(0, this.#options.now() - oldest);
  }

  /** How long ago the latest run ended in which nothing failed and every leased endpoint could be opened. */
  stalledMs(): number {
    return performance.now() - this.#soundAt;
  }

  readonly #onTrouble = (error: unknown): void => {
    const at = performance.now();
    if (at - this.#troubleAt < TROUBLE_MS) return;
    this.#troubleAt = at;
    this.#options.logger.warn({ err: error }, 'webhooks could not be processed; retrying every second');
  };

  async #run(stopping: AbortSignal): Promise<void> {
    const seen = await this.#leases.look();
    this.pausedEndpoints = seen.filter(({ isPaused }) => isPaused).length;
    this.#endChanged(seen);
    await this.#flush(false);
    await this.#renew();
    if (this.#senders.size > 0) this.#latest = await this.#options.events.latest();
    await this.#eachSender((sender) => sender.tick(this.#latest));
    await this.#begin(seen, stopping);
    await this.#clean(seen);
    if (this.#unopened.size === 0) this.#soundAt = performance.now();
  }

  /**
   * Ends the senders whose endpoint was deleted, paused, changed, or leased to another process, and those whose latest
   * changes the database has lost.
   */
  #endChanged(seen: readonly SeenEndpoint[]): void {
    const byId = new Map(seen.map((each) => [each.id, each]));
    for (const sender of this.#senders.values()) {
      const { id, revision } = sender.endpoint;
      const now = byId.get(id);
      if (now === undefined || !now.isOurs || now.changes !== sender.storedChanges) this.#discard(sender);
      else if (now.isPaused || now.revision !== revision) sender.drain();
    }
  }

  /** Stores the changes of all senders, and removes the senders that have ended. */
  async #flush(isReleased: boolean): Promise<void> {
    const ended = [...this.#senders.values()].filter((sender) => sender.isIdle);
    const taken = [...this.#senders.values()].flatMap((sender) => {
      const changes = sender.takeChanges(isReleased);
      return changes === null ? [] : [{ sender, changes }];
    });
    if (taken.length > 0) await this.#storeChanges(taken);
    for (const sender of ended) if (!isReleased) this.#senders.delete(sender.endpoint.id);
  }

  async #storeChanges(taken: readonly { sender: EndpointSender; changes: EndpointChanges }[]): Promise<void> {
    const all = taken.map(({ changes }) => changes);
    const stored = await this.#store.store(all, this.#options.now()).catch((error) => {
      // The changes may or may not have been stored, so new senders start from the stored state.
      for (const { sender } of taken) this.#discard(sender);
      throw error;
    });
    for (const { sender, changes } of taken) {
      const firstPlace = stored.get(sender.endpoint.id) ?? null;
      if (firstPlace === null) this.#discard(sender);
      else sender.stored(changes, firstPlace);
      if (changes.pausedBecause !== null) this.#logPause(changes);
    }
    await this.#store.storeDeliveries(all, stored);
  }

  #logPause({ endpointId, pausedBecause }: Pick<EndpointChanges, 'endpointId' | 'pausedBecause'>): void {
    this.#options.logger.warn({ endpoint: endpointId, reason: pausedBecause }, 'a webhook endpoint was paused');
  }

  #discard(sender: EndpointSender): void {
    sender.abandon();
    this.#senders.delete(sender.endpoint.id);
  }

  async #renew(): Promise<void> {
    const { leases } = this.#options;
    const at = performance.now();
    if (leases === null || at - this.#renewedAt < leases.renewMs) return;
    this.#renewedAt = at;
    const renewed = await this.#leases.renew([...this.#senders.keys()]);
    this.#leasedAt.clear();
    for (const id of renewed) this.#leasedAt.set(id, at);
  }

  /** Leases free endpoints, and creates senders for all endpoints that are leased to this process. */
  async #begin(seen: readonly SeenEndpoint[], stopping: AbortSignal): Promise<void> {
    const wanted = seen.filter(({ id, isPaused }) => !isPaused && !this.#senders.has(id));
    const ours = wanted.filter(({ isOurs }) => isOurs);
    const free = wanted
      .filter(({ isOurs, isFree }) => isFree && !isOurs)
      .toSorted((a, b) => Number(this.#unopened.has(a.id)) - Number(this.#unopened.has(b.id)));
    const openable = new Set(idsOf([...ours, ...free]));
    for (const id of this.#unopened) if (!openable.has(id)) this.#unopened.delete(id);
    const { leases } = this.#options;
    const at = performance.now();
    const leased = await this.#leases.claim(idsOf(ours), idsOf(free));
    for (const id of leased) {
      if (stopping.aborted) return;
      this.#leasedAt.set(id, at);
      this.#unopened.delete(id);
      // If the endpoint cannot be opened, another process may be able to open it.
      await this.#open(id).catch(async (error) => {
        this.#onTrouble(error);
        this.#unopened.add(id);
        await this.#leases.release(id);
      });
      await setImmediate();
      // The next run renews the leases, which could expire meanwhile, and opens the other endpoints.
      if (leases !== null && performance.now() - at > leases.renewMs) return;
    }
  }

  async #open(id: number): Promise<void> {
    const row = await this.#leases.read(id);
    if (row === null) return;
    const endpoint = this.#decrypted(row);
    if (endpoint === null) {
      await this.#store.pause(id, UNDECRYPTED, this.#options.now());
      this.#logPause({ endpointId: id, pausedBecause: UNDECRYPTED });
      return;
    }
    const queue = new DeliveryQueue(row.position ?? (await this.#options.events.positionBefore(row.created_at)));
    for (const event of await this.#store.pending(id)) queue.addStored(event);
    const { position: storedPosition, changes: storedChanges } = row;
    const start = { storedPosition, storedChanges, lastDeliveredAt: await this.#store.lastDeliveredAt(id) };
    const sender = new EndpointSender(endpoint, queue, start, () => this.#isLeased(id), {
      events: this.#options.events,
      store: this.#store,
      gate: this.#gate,
      send: this.#options.request ?? ((request) => this.#requests.send(request)),
      now: this.#options.now,
      retryDelay: this.#options.retryDelay ?? ((failures, elapsed) => retryDelayMs(failures, elapsed, Math.random())),
      onAttempt: (kind) => {
        this.attempts[kind] += 1;
      },
      onTrouble: this.#onTrouble,
    });
    this.#senders.set(id, sender);
    sender.tick(this.#latest);
  }

  /** @returns null if the current secret cannot be decrypted */
  #decrypted(row: Selectable<AccountTables['webhook_endpoints']>): LeasedEndpoint | null {
    const { endpoint_id: id, account, url, types, revision } = row;
    const secret = this.#opened(row.secret);
    if (secret === null) return null;
    // A user may have rotated a secret because it cannot be decrypted.
    const previousSecrets = previousSecretsIn(row.previous_secrets).flatMap(({ sealed, expiresAt }) => {
      const opened = this.#opened(sealed);
      return opened === null ? [] : [{ secret: opened, expiresAt }];
    });
    return { id, account, url, types: typesOf(types), revision, secret, previousSecrets };
  }

  #opened(sealed: string): string | null {
    try {
      return this.#options.secrets.open(sealed);
    } catch (error) {
      if (!(error instanceof UnusableSecret)) throw error;
      return null;
    }
  }

  /** Returns false if another process might have leased the endpoint. */
  #isLeased(id: number): boolean {
    const { leases } = this.#options;
    const leasedAt = this.#leasedAt.get(id) ?? Number.NEGATIVE_INFINITY;
    return leases === null || performance.now() - leasedAt < leases.safeMs;
  }

  async #eachSender(look: (sender: EndpointSender) => void): Promise<void> {
    let count = 0;
    for (const sender of [...this.#senders.values()]) {
      look(sender);
      count += 1;
      if (count % SENDERS_PER_TURN === 0) await setImmediate();
    }
  }

  /** Deletes old deliveries in short steps, one endpoint at a time. */
  async #clean(seen: readonly SeenEndpoint[]): Promise<void> {
    let left = seen.length;
    for (let step = 0; step < CLEANING_STEPS && left > 0; step++) {
      const next = seen.find(({ id }) => id > this.#cleanedId) ?? seen[0];
      if (next === undefined) return;
      const isMore = await this.#store.deleteDeliveries(next.id, this.#options.now());
      if (!isMore) {
        this.#cleanedId = next.id;
        left -= 1;
      }
      await setImmediate();
    }
  }
}

function idsOf(endpoints: readonly SeenEndpoint[]): number[] {
  return endpoints.map(({ id }) => id);
}
