// The requests that clients send in a simulation: reads and writes of credits, and requests that must be refused.

import type { ModelCommand, ModelUser, ModelValidity } from '../model/model-types.ts';
import type { ReferenceLedger, StartCommand } from '../model/reference-model.ts';
import { bodyOf, INVALID_BODIES } from './bodies.ts';
import type { Chance } from './chance.ts';
import type { SentRequest } from './connection.ts';
import type { DetailsFilter } from './predicted-replies.ts';

export const KINDS = [
  'add',
  'subtract',
  'start-cycle',
  'replace-cycle',
  'schedule-plan',
  'stop-cycle',
  'hold',
  'capture',
  'release',
  'refund',
  'balance',
  'balance at an instant',
  'balance history',
  'holds',
  'transactions',
  'transactions with details',
  'preview of a change',
  'reuse of a key',
  'invalid request',
  'unknown API key',
  'API key with the scope read',
] as const;

export type Kind = (typeof KINDS)[number];

const WEIGHTS: Readonly<Record<Kind, number>> = {
  add: 22,
  subtract: 35,
  'start-cycle': 9,
  'replace-cycle': 4,
  'schedule-plan': 7,
  'stop-cycle': 6,
  hold: 18,
  capture: 12,
  release: 4,
  refund: 10,
  balance: 14,
  'balance at an instant': 4,
  'balance history': 1,
  holds: 2,
  transactions: 1,
  'transactions with details': 2,
  'preview of a change': 3,
  'reuse of a key': 3,
  'invalid request': 2,
  'unknown API key': 1,
  'API key with the scope read': 1,
};

const READS = [
  'balance',
  'balance at an instant',
  'balance history',
  'holds',
  'transactions',
  'transactions with details',
] as const;
type ReadKind = (typeof READS)[number];

const MOST = 2 ** 53 - 1;
const KEYED_SHARE = 0.75;
const NOTED_SHARE = 0.15;
const NOTES = ['job 1', 'job 12', 'Zoë 💳 "job"'];
const UNKNOWN_ID = '019bc0de-0000-4000-8000-000000000000';
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;
const DETAILS_MAX = 50;
const REMEMBERED = 8;

export interface Operation {
  readonly number: number;
  readonly kind: Kind;
  readonly user: ModelUser;
  /** Null for reads, and for writes that never reach the ledger. */
  readonly command: ModelCommand | null;
  readonly sent: SentRequest;
  readonly instants?: readonly number[];
  readonly previewed?: StartCommand;
  readonly filter?: DetailsFilter;
  /** The status of a write that never reaches the ledger; null for other requests. */
  readonly refusedWith: number | null;
}

export interface Secrets {
  readonly write: string;
  readonly read: string;
  readonly unknown: string;
  readonly actor: string;
}

export interface KnownLedger {
  ledgerOf(user: ModelUser): ReferenceLedger;
  now(): number;
}

export class Operations {
  readonly #chance: Chance;
  readonly #drawn: readonly Kind[];
  readonly #users: readonly ModelUser[];
  readonly #known: KnownLedger;
  #last: Operation | null = null;

  constructor(chance: Chance, kinds: readonly Kind[], users: readonly ModelUser[], known: KnownLedger) {
    this.#chance = chance;
    this.#drawn = kinds.flatMap((kind) => Array<Kind>(WEIGHTS[kind]).fill(kind));
    this.#users = users;
    this.#known = known;
  }

  draw(number: number, secrets: Secrets): Operation {
    let kind = this.#chance.pick(this.#drawn);
    if (kind === 'reuse of a key' && this.#last === null) kind = 'balance';
    const operation = this.#operation(number, kind, secrets);
    if (operation.command !== null && operation.sent.idempotencyKey !== null) this.#last = operation;
    return operation;
  }

  #operation(number: number, kind: Kind, secrets: Secrets): Operation {
    if (kind === 'preview of a change') return this.#preview(number, kind, secrets);
    return isRead(kind) ? this.#read(number, kind, secrets) : this.#write(number, kind, secrets);
  }

  #preview(number: number, kind: Kind, secrets: Secrets): Operation {
    const user = this.#chance.pick(this.#users);
    const onActive = this.#chance.pick(['refuse', 'replace', 'at_period_end', 'at_period_end'] as const);
    const previewed = { ...user, actor: secrets.actor, note: null, ...this.#start(onActive) };
    const sent: SentRequest = {
      method: 'POST',
      path: '/preview-change',
      body: bodyOf(previewed, this.#chance.happens(0.1)),
      authorization: secrets.read,
      idempotencyKey: null,
    };
    return { number, kind, user, command: null, sent, previewed, refusedWith: null };
  }

  #read(number: number, kind: ReadKind, secrets: Secrets): Operation {
    const user = this.#chance.pick(this.#users);
    const endUser = this.#chance.happens(0.1) ? user.endUser.toUpperCase() : user.endUser;
    const { path, fields, ...asked } = this.#query(kind, user);
    const all = { end_user_id: endUser, ...fields };
    const inQuery = this.#chance.happens(0.5);
    const sent: SentRequest = {
      method: 'GET',
      path: inQuery ? `${path}?${queryOf(all)}` : path,
      body: inQuery ? null : JSON.stringify(all),
      authorization: secrets.read,
      idempotencyKey: null,
    };
    return { number, kind, user, command: null, sent, refusedWith: null, ...asked };
  }

  #query(kind: ReadKind, user: ModelUser) {
    switch (kind) {
      case 'balance':
        return { path: '/get-active-balance', fields: {} };
      case 'holds':
        return { path: '/get-holds', fields: {} };
      case 'transactions':
        return { path: '/get-all-user-transactions', fields: {} };
      case 'balance at an instant': {
        const at = this.#instant(user);
        return { path: '/get-active-balance', fields: { at: isoOf(at) }, instants: [at] };
      }
      case 'balance history': {
        const from = this.#instant(user);
        const [interval, ms] = this.#chance.pick([['hour', HOUR] as const, ['day', DAY] as const]);
        const instants = Array.from({ length: this.#chance.between(1, 20) }, (_, index) => from + index * ms);
        const fields = { from: isoOf(from), to: isoOf((instants.at(-1) as number) + ms - 1), interval };
        return { path: '/get-balance-history', fields, instants };
      }
      case 'transactions with details':
        return this.#detailsQuery();
    }
  }

  #detailsQuery() {
    const { between, happens, pick } = bound(this.#chance);
    const limit = between(1, DETAILS_MAX);
    const kind = happens(0.5)
      ? pick([
          'hold',
          'capture',
          'release',
          'lapse',
          'refund',
          'stop-cycle',
          'renew',
          'schedule-plan',
          'change-plan',
          'add',
        ])
      : null;
    const notePrefix = happens(0.2) ? pick(['job', 'job 12', 'Zoë']) : null;
    const fields = { limit, details: true, ...(kind && { kind }), ...(notePrefix && { note: notePrefix }) };
    return { path: '/get-all-user-transactions', fields, filter: { limit, kind, notePrefix } };
  }

  #instant(user: ModelUser): number {
    const { between, happens, pick } = bound(this.#chance);
    const ledger = this.#known.ledgerOf(user);
    const now = this.#known.now();
    const known = [...ledger.instantsOf(user).slice(-REMEMBERED), ...ledger.boundaries().slice(0, REMEMBERED), now];
    if (happens(0.7)) return Math.max(pick(known) + between(-1, 1), 0);
    return Math.max(now + between(-40 * DAY, 40 * DAY), 0);
  }

  #write(number: number, kind: Kind, secrets: Secrets): Operation {
    const chance = this.#chance;
    const isReuse = kind === 'reuse of a key';
    const user = isReuse && this.#last ? this.#last.user : chance.pick(this.#users);
    const note = chance.happens(NOTED_SHARE) ? chance.pick(NOTES) : null;
    const command = { ...user, actor: secrets.actor, note, ...this.#wish(kind, user) } as ModelCommand;
    const key = chance.happens(KEYED_SHARE) ? `${secrets.actor}-${number}` : null;
    const sent: SentRequest = {
      method: 'POST',
      path: `${chance.happens(0.1) ? '/v1' : ''}/${command.kind}`,
      body: bodyOf(command, chance.happens(0.1)),
      authorization: secrets.write,
      idempotencyKey: isReuse ? (this.#last?.sent.idempotencyKey ?? null) : key,
    };
    const refused = { number, kind, user, command: null };
    switch (kind) {
      case 'invalid request':
        return { ...refused, sent: { ...sent, body: chance.pick(INVALID_BODIES)(user.endUser) }, refusedWith: 422 };
      case 'unknown API key':
        return { ...refused, sent: { ...sent, authorization: secrets.unknown }, refusedWith: 401 };
      case 'API key with the scope read':
        return { ...refused, sent: { ...sent, authorization: secrets.read }, refusedWith: 403 };
      default:
        return { number, kind, user, command, sent, refusedWith: null };
    }
  }

  #wish(kind: Kind, user: ModelUser) {
    const chance = this.#chance;
    switch (kind) {
      case 'stop-cycle':
        return { kind: 'stop-cycle' };
      case 'start-cycle':
        return this.#start('refuse');
      case 'replace-cycle':
        return this.#start('replace');
      case 'schedule-plan':
        return this.#start('at_period_end');
      case 'subtract':
        return { kind: 'subtract', amount: chance.happens(0.15) ? this.#nearBalance(user) : chance.between(1, 40) };
      case 'hold': {
        const amount = chance.happens(0.1) ? this.#nearBalance(user) : chance.between(1, 20);
        return { kind: 'hold', amount, expiresInSeconds: chance.pick(HOLD_SECONDS) };
      }
      case 'capture':
        return { kind: 'capture', ...this.#capture(user) };
      case 'release':
        return { kind: 'release', holdId: this.#holdId(user) };
      case 'refund':
        return { kind: 'refund', ...this.#refund(user) };
      default:
        return { kind: 'add', amount: this.#amount(), ...this.#validity(0.15) };
    }
  }

  #start(onActive: StartCommand['onActive']) {
    const { between, happens, pick } = bound(this.#chance);
    const rolloverMax = happens(0.4) ? 0 : happens(0.01) ? MOST - between(0, 100) : pick([1, 5, 20, 100, 1_000]);
    return { kind: 'start-cycle', amount: this.#amount(), ...this.#validity(0.4), rolloverMax, onActive } as const;
  }

  #validity(inMonths: number): ModelValidity {
    const { happens, pick } = bound(this.#chance);
    if (happens(inMonths)) return { validityDays: null, validityMonths: pick([1, 1, 1, 2, 3, 12, 120]) };
    return { validityDays: pick([1, 1, 2, 2, 3, 7, 31, 365]), validityMonths: null };
  }

  #amount(): number {
    if (this.#chance.happens(0.005)) return MOST - this.#chance.between(0, 100);
    return this.#chance.between(1, 60);
  }

  /** The balance, or one credit more, to find off-by-one errors. */
  #nearBalance(user: ModelUser): number {
    return atLeastOne(this.#known.ledgerOf(user).peekBalance(user).balance + this.#chance.between(0, 1));
  }

  #capture(user: ModelUser) {
    const { between, happens } = bound(this.#chance);
    const holdId = this.#holdId(user);
    const { balance, holds } = this.#known.ledgerOf(user).peekBalance(user);
    const held = holds.find(({ id }) => id === holdId)?.amount ?? 0;
    if (happens(0.3)) return { holdId, amount: null };
    if (happens(0.3)) return { holdId, amount: atLeastOne(held + between(0, 1)) };
    if (happens(0.1)) return { holdId, amount: atLeastOne(held + balance + between(0, 1)) };
    return { holdId, amount: between(1, Math.max(held, 1)) };
  }

  #refund(user: ModelUser) {
    const { between, happens, pick } = bound(this.#chance);
    const ledger = this.#known.ledgerOf(user);
    const transactionId = this.#pickId(ledger.spentBy(user), user);
    const refundable = ledger.refundable(user, transactionId) ?? 0;
    const validityDays = happens(0.4) ? pick([1, 2, 7, 365]) : null;
    if (happens(0.4)) return { transactionId, amount: null, validityDays };
    const amount = happens(0.5) ? atLeastOne(refundable + between(0, 1)) : between(1, 20);
    return { transactionId, amount, validityDays };
  }

  #holdId(user: ModelUser): string {
    const open = this.#known
      .ledgerOf(user)
      .peekBalance(user)
      .holds.map(({ id }) => id);
    return this.#pickId(open, user);
  }

  #pickId(fitting: readonly string[], user: ModelUser): string {
    const { happens, pick } = bound(this.#chance);
    if (fitting.length > 0 && happens(0.85)) return pick(fitting.slice(-REMEMBERED));
    const whose = happens(0.8) ? user : pick(this.#users);
    return pick([...this.#known.ledgerOf(whose).idsOf(whose).slice(-REMEMBERED), UNKNOWN_ID]);
  }
}

const HOLD_SECONDS = [1, 1, 2, 5, 60, 900, 3_600, 86_400, 2 * 86_400, 7 * 86_400, 2_592_000];

export const LAST_READS: readonly (Pick<Operation, 'kind' | 'filter'> & { readonly path: string })[] = [
  { kind: 'balance', path: '/get-active-balance?' },
  { kind: 'holds', path: '/get-holds?' },
  { kind: 'transactions', path: '/get-all-user-transactions?' },
  {
    kind: 'transactions with details',
    path: '/get-all-user-transactions?details=true&limit=50&',
    filter: { limit: 50, kind: null, notePrefix: null },
  },
];

function isRead(kind: Kind): kind is ReadKind {
  return READS.some((read) => read === kind);
}

function bound(chance: Chance) {
  return {
    between: (least: number, most: number) => chance.between(least, most),
    happens: (rate: number) => chance.happens(rate),
    pick: <Item>(items: readonly Item[]) => chance.pick(items),
  };
}

function atLeastOne(amount: number): number {
  return Math.min(Math.max(amount, 1), MOST);
}

function queryOf(fields: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
}

function isoOf(instant: number): string {
  return new Date(instant).toISOString();
}
