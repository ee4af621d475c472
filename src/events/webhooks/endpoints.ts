// Manages webhook endpoints, for the console and the command line. Each change to an endpoint increases its revision,
// which webhook-job.ts reads every second.

import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Selectable } from 'kysely';
import { HOUR_MS, type Instant } from '../../ledger/instant.ts';
import type { Actor } from '../../ledger/posting.ts';
import type { AccountDatabase, AccountQueries, AccountTables } from '../../store/account-database.ts';
import type { EventType } from '../../store/event-log.ts';
import { type AddressRules, urlProblem } from './addresses.ts';
import { type Delivery, deliveriesOf, deliveriesPage, lastDeliveredAt } from './deliveries.ts';
import { eventsIn } from './past-events.ts';
import { addPending, restartPending } from './pending.ts';
import { newSecret, type SecretBox } from './secrets.ts';

export interface Endpoint {
  readonly id: number;
  readonly account: number;
  /** The URL contains no user name or password. */
  readonly url: string;
  /** The types of events that the endpoint receives. Empty means all types. */
  readonly types: readonly EventType[];
  readonly createdAt: Instant;
  readonly createdBy: Actor;
  readonly paused: { readonly at: Instant; readonly because: string } | null;
  /** Webhooks are also signed with a previous secret until this instant; null if only the current secret is used. */
  readonly previousSecretUntil: Instant | null;
}

export interface PreviousSecret {
  /** The encrypted secret. */
  readonly sealed: string;
  readonly expiresAt: Instant;
}

export interface ListedEndpoint extends Endpoint {
  readonly accountName: string;
}

interface NewEndpoint {
  readonly account: number;
  readonly url: string;
  readonly types: readonly EventType[];
  readonly createdBy: Actor;
  /** The `formHash` of the console form that adds the endpoint; null or absent if there is none. */
  readonly formSha256?: string | null;
}

export interface EndpointSummary {
  /** The number of events in `webhook_pending`. */
  readonly pending: number;
  /** The time of the earliest attempt to deliver an event that is still pending; null if there has been none. */
  readonly oldestPendingAt: Instant | null;
  readonly lastDeliveredAt: Instant | null;
}

/** The message is shown to the user, so it is a full sentence. */
export class InvalidEndpoint extends Error {
  override readonly name = 'InvalidEndpoint';
}

export const ENDPOINTS_MAX = 20;
/** The largest ID that both stores can hold. */
const ID_MAX = 2 ** 31 - 1;
export const RESENT_MAX = 10_000;
/** On SQLite, a transaction with this many events blocks the main thread for a few milliseconds. */
const RESENT_PER_TRANSACTION = 100;
/** How long webhooks are also signed with the previous secret after a rotation. */
const PREVIOUS_SECRET_MS = 24 * HOUR_MS;
/** Keeps the signature header short, even if a secret is rotated often. */
const PREVIOUS_SECRETS_MAX = 4;
const TEST_TYPE = 'webhook.test';
const PAUSED_BY_USER = 'The endpoint was paused in the console or on the command line.';

interface Options {
  readonly database: AccountDatabase;
  readonly secrets: Pick<SecretBox, 'seal'>;
  readonly now: () => number;
  readonly rules: AddressRules;
}

export class Endpoints {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /**
   * @returns the endpoint with its secret, which is never shown again; null if the form has already added an endpoint
   * @throws InvalidEndpoint (rejects) if the URL is not allowed, or the account has `ENDPOINTS_MAX` endpoints
   */
  async add(added: NewEndpoint): Promise<{ readonly endpoint: Endpoint; readonly secret: string } | null> {
    const { account, url, types, createdBy, formSha256 = null } = added;
    const problem = urlProblem(url, this.#options.rules);
    if (problem !== null) throw new InvalidEndpoint(problem);
    const secret = newSecret();
    const row = await this.#options.database.alone(async (queries) => {
      const { count, sent } = await queries
        .selectFrom('webhook_endpoints')
        .select(({ fn }) => [
          fn.count<number>('endpoint_id').filterWhere('account', '=', account).as('count'),
          fn.count<number>('endpoint_id').filterWhere('form_sha256', '=', formSha256).as('sent'),
        ])
        .executeTakeFirstOrThrow();
      if (Number(sent) > 0) return null;
      if (count >= ENDPOINTS_MAX)
        throw new InvalidEndpoint(`An account can have at most ${ENDPOINTS_MAX} endpoints. Remove one first.`);
      const id = await newId(queries);
      const values = {
        endpoint_id: id,
        account,
        url: new URL(url).href,
        types: types.join(','),
        secret: this.#options.secrets.seal(secret),
        previous_secrets: '[]',
        created_at: this.#options.now(),
        created_by: createdBy,
        paused_at: null,
        paused_because: null,
        position: null,
        form_sha256: formSha256,
        rotation_form_sha256: null,
      };
      await queries.insertInto('webhook_endpoints').values(values).execute();
      // After the INSERT: on Citus, the other order could deadlock with the senders, which update endpoints.
      await queries.updateTable('accounts').set({ last_endpoint_id: id }).where('account', '=', account).execute();
      return values;
    });
    return row === null ? null : { endpoint: endpointOf(row, this.#options.now()), secret };
  }

  /** Sorted by creation time. @param account null to list the endpoints of all accounts */
  async list(account: number | null): Promise<readonly ListedEndpoint[]> {
    const rows = await this.#options.database.queries
      .selectFrom('webhook_endpoints')
      .innerJoin('accounts', 'accounts.account', 'webhook_endpoints.account')
      .selectAll('webhook_endpoints')
      .select('accounts.name as accountName')
      .$if(account !== null, (query) => query.where('webhook_endpoints.account', '=', account))
      .orderBy('endpoint_id')
      .execute();
    return rows.map((row) => ({ ...endpointOf(row, this.#options.now()), accountName: row.accountName }));
  }

  /** @param account null to find an endpoint of any account; the following methods treat `account` in the same way */
  async find(account: number | null, id: number): Promise<Endpoint | null> {
    const row = await this.#options.database.queries
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('endpoint_id', '=', id)
      .$if(account !== null, (query) => query.where('account', '=', account))
      .executeTakeFirst();
    return row === undefined ? null : endpointOf(row, this.#options.now());
  }

  /** Sets the types of events that are read from the event log from now on. Pending events stay pending. */
  setTypes(account: number | null, id: number, types: readonly EventType[]): Promise<boolean> {
    return this.#change(account, id, async (queries) => {
      await updateOf(queries, id)
        .set({ types: types.join(',') })
        .execute();
    });
  }

  /**
   * Creates a new secret. For 24 hours, webhooks are also signed with the old secret.
   *
   * @param formSha256 the `formHash` of the console form; null if there is none
   * @returns the new secret; null if there is no such endpoint, or if the form has already rotated its secret
   */
  async rotate(account: number | null, id: number, formSha256: string | null = null): Promise<string | null> {
    const secret = newSecret();
    const isRotated = await this.#change(account, id, async (queries) => {
      const row = await queries
        .selectFrom('webhook_endpoints')
        .select(['secret', 'previous_secrets', 'rotation_form_sha256'])
        .where('endpoint_id', '=', id)
        .executeTakeFirstOrThrow();
      if (formSha256 !== null && row.rotation_form_sha256 === formSha256) return false;
      const now = this.#options.now();
      const earlier = previousSecretsIn(row.previous_secrets).filter(({ expiresAt }) => expiresAt > now);
      const previous = [{ sealed: row.secret, expiresAt: now + PREVIOUS_SECRET_MS }, ...earlier];
      await updateOf(queries, id)
        .set({
          previous_secrets: JSON.stringify(previous.slice(0, PREVIOUS_SECRETS_MAX)),
          secret: this.#options.secrets.seal(secret),
          rotation_form_sha256: formSha256,
        })
        .execute();
      return true;
    });
    return isRotated ? secret : null;
  }

  /** Removes the endpoint with its pending events and its deliveries. */
  remove(account: number | null, id: number): Promise<boolean> {
    return this.#change(account, id, async (queries) => {
      await queries.deleteFrom('webhook_pending').where('endpoint_id', '=', id).execute();
      await queries.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute();
      await queries.deleteFrom('webhook_endpoints').where('endpoint_id', '=', id).execute();
    });
  }

  /** Events that happen during the pause are delivered after `resume`. */
  pause(account: number | null, id: number): Promise<boolean> {
    return this.#change(account, id, async (queries) => {
      await updateOf(queries, id)
        .set({ paused_at: this.#options.now(), paused_because: PAUSED_BY_USER })
        .where('paused_at', 'is', null)
        .execute();
    });
  }

  /** Ends a pause. All pending events become due now, and their retry schedule starts from the beginning. */
  resume(account: number | null, id: number): Promise<boolean> {
    return this.#change(account, id, async (queries, revision) => {
      await updateOf(queries, id).set({ paused_at: null, paused_because: null }).execute();
      await restartPending(queries, id, revision, this.#options.now()).execute();
    });
  }

  sendTest(account: number | null, id: number): Promise<boolean> {
    return this.#change(account, id, async (queries) => {
      const eventId = `evt_${randomBytes(16).toString('hex')}`;
      const timestamp = new Date(this.#options.now()).toISOString();
      const body = JSON.stringify({ id: eventId, type: TEST_TYPE, timestamp, data: { endpoint_id: id } });
      await addPending(queries, id, [{ eventId, type: TEST_TYPE, endUserId: '', body }], this.#options.now());
    });
  }

  async summary(account: number | null, id: number): Promise<EndpointSummary> {
    if ((await this.find(account, id)) === null) return { pending: 0, oldestPendingAt: null, lastDeliveredAt: null };
    const { queries } = this.#options.database;
    const { pending, oldest } = await queries
      .selectFrom('webhook_pending')
      .select(({ fn }) => [fn.countAll<number>().as('pending'), fn.min('first_attempt_at').as('oldest')])
      .where('endpoint_id', '=', id)
      .executeTakeFirstOrThrow();
    return { pending, oldestPendingAt: oldest, lastDeliveredAt: await lastDeliveredAt(queries, id) };
  }

  /**
   * Lists deliveries, latest first.
   *
   * @param page `before` is the `next` of the previous page; null for the first page
   */
  async deliveries(
    account: number | null,
    id: number,
    page: { readonly before: string | null; readonly limit: number },
  ): Promise<{ deliveries: readonly Delivery[]; next: string | null }> {
    if ((await this.find(account, id)) === null) return { deliveries: [], next: null };
    return deliveriesPage(this.#options.database.queries, id, page);
  }

  async delivery(account: number | null, id: number, deliveryId: string): Promise<Delivery | null> {
    if ((await this.find(account, id)) === null) return null;
    const ofEndpoint = deliveriesOf(this.#options.database.queries, id);
    const row = await ofEndpoint.where('delivery_id', '=', deliveryId).executeTakeFirst();
    return row ?? null;
  }

  /**
   * Queues an event for another delivery. If the event is pending, its retry schedule starts from the beginning.
   *
   * @returns false if there is no such endpoint, or if the event is neither pending nor in the stored deliveries
   */
  resend(account: number | null, id: number, eventId: string): Promise<boolean> {
    return this.#change(account, id, async (queries, revision) => {
      const pending = await restartPending(queries, id, revision, this.#options.now())
        .where('event_id', '=', eventId)
        .executeTakeFirst();
      if (pending.numUpdatedRows > 0) return true;
      const row = await queries
        .selectFrom('webhook_deliveries')
        .select(['event_id', 'type', 'body'])
        .where('endpoint_id', '=', id)
        .where('event_id', '=', eventId)
        .limit(1)
        .executeTakeFirst();
      if (row === undefined) return false;
      const { data } = JSON.parse(row.body) as { data: { end_user_id?: string } };
      const event = { eventId, type: row.type, endUserId: data.end_user_id ?? '', body: row.body };
      await addPending(queries, id, [event], this.#options.now());
      return true;
    });
  }

  /**
   * Queues past events for another delivery: the events from `from` (inclusive) to `to` (exclusive), of the types that
   * the endpoint receives. As in `resend`, the retry schedule of pending events starts from the beginning.
   *
   * @returns the number of queued events; 0 if there is no such endpoint
   * @throws InvalidEndpoint (rejects) if there are more than `RESENT_MAX` events
   */
  async resendRange(account: number | null, id: number, from: Instant, to: Instant): Promise<number> {
    const endpoint = await this.find(account, id);
    if (endpoint === null) return 0;
    const events = await eventsIn(this.#options.database.queries, endpoint, { from, to, max: RESENT_MAX });
    const tooMany = `This time range contains more than ${RESENT_MAX} events of the types that this endpoint receives. Choose a shorter time range.`;
    if (events === null) throw new InvalidEndpoint(tooMany);
    for (let start = 0; start < events.length; start += RESENT_PER_TRANSACTION) {
      const some = events.slice(start, start + RESENT_PER_TRANSACTION);
      const isQueued = await this.#change(account, id, async (queries, revision) => {
        const ids = some.map(({ eventId }) => eventId);
        const restarted = await restartPending(queries, id, revision, this.#options.now())
          .where('event_id', 'in', ids)
          .returning('event_id')
          .execute();
        const pending = new Set(restarted.map(({ event_id }) => event_id));
        const others = some.filter(({ eventId }) => !pending.has(eventId));
        if (others.length > 0) await addPending(queries, id, others, this.#options.now());
      });
      if (!isQueued) return start;
      await setImmediate();
    }
    return events.length;
  }

  /**
   * Increases the revision of the endpoint, and then runs `work` in the same transaction. Increasing the revision locks
   * the row of the endpoint.
   *
   * @returns false if there is no such endpoint, or if `work` returns false
   */
  #change(
    account: number | null,
    id: number,
    work: (queries: AccountQueries, revision: number) => Promise<boolean> | Promise<void>,
  ): Promise<boolean> {
    return this.#options.database.alone(async (queries) => {
      const row = await updateOf(queries, id)
        .set(({ eb }) => ({ revision: eb('revision', '+', 1) }))
        .$if(account !== null, (query) => query.where('account', '=', account))
        .returning('revision')
        .executeTakeFirst();
      return row !== undefined && (await work(queries, row.revision)) !== false;
    });
  }
}

/** Returns the endpoint ID, or null if the text is not a valid ID. */
export function endpointIdIn(text: string): number | null {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  return id >= 1 && id <= ID_MAX ? id : null;
}

/** Returns an ID that no endpoint has ever had. A script with the ID of a removed endpoint must not affect another one. */
async function newId(queries: AccountQueries): Promise<number> {
  const { last } = await queries
    .selectFrom('accounts')
    .select(({ fn }) => fn.max('last_endpoint_id').as('last'))
    .executeTakeFirstOrThrow();
  return last + 1;
}

function updateOf(queries: AccountQueries, id: number) {
  return queries.updateTable('webhook_endpoints').where('endpoint_id', '=', id);
}

/** @param types as stored, separated by commas; empty means all types */
export function typesOf(types: string): readonly EventType[] {
  return types === '' ? [] : (types.split(',') as EventType[]);
}

/** @param text as stored; the result is sorted by `expiresAt`, latest first */
export function previousSecretsIn(text: string): readonly PreviousSecret[] {
  return JSON.parse(text) as PreviousSecret[];
}

type EndpointRow = Omit<
  Selectable<AccountTables['webhook_endpoints']>,
  'changes' | 'revision' | 'leased_by' | 'leased_until' | 'form_sha256'
>;

function endpointOf(row: EndpointRow, now: Instant): Endpoint {
  const { paused_at: at, paused_because: because } = row;
  const [latest] = previousSecretsIn(row.previous_secrets);
  return {
    id: row.endpoint_id,
    account: row.account,
    url: row.url,
    types: typesOf(row.types),
    createdAt: row.created_at,
    createdBy: row.created_by,
    paused: at === null || because === null ? null : { at, because },
    previousSecretUntil: latest !== undefined && latest.expiresAt > now ? latest.expiresAt : null,
  };
}
