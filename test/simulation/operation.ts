// The requests of clients in a simulation: all operations of the interface, and invalid requests.

import type { ModelCommand, ModelUser } from '../model/reference-model.ts';
import type { Chance } from './chance.ts';
import type { SentRequest } from './connection.ts';

export const KINDS = [
  'add',
  'subtract',
  'start-cycle',
  'replace-cycle',
  'stop-cycle',
  'balance',
  'transactions',
  'reuse of a key',
  'invalid request',
  'unknown API key',
  'API key with the scope read',
] as const;

export type Kind = (typeof KINDS)[number];

/** The relative frequency of each kind, unless the seed disables it. */
const WEIGHTS: Readonly<Record<Kind, number>> = {
  add: 22,
  subtract: 35,
  'start-cycle': 9,
  'replace-cycle': 4,
  'stop-cycle': 6,
  balance: 14,
  transactions: 1,
  'reuse of a key': 3,
  'invalid request': 2,
  'unknown API key': 1,
  'API key with the scope read': 1,
};

const MOST = 2 ** 53 - 1;
const KEYED_SHARE = 0.75;

/** One operation of a client, which may take several requests. */
export interface Operation {
  readonly number: number;
  readonly kind: Kind;
  readonly user: ModelUser;
  /** Null for reads, and for writes that never reach the ledger. */
  readonly command: ModelCommand | null;
  readonly sent: SentRequest;
  /** The status of the response to a write that never reaches the ledger; null for other requests. */
  readonly refusedWith: number | null;
}

/** API keys, as values of the header `Authorization`. */
export interface Secrets {
  readonly write: string;
  readonly read: string;
  readonly unknown: string;
  /** The actor of transactions with the API key `write`. */
  readonly actor: string;
}

/** Draws the operations of one client from the kinds that the seed has enabled. */
export class Operations {
  readonly #chance: Chance;
  readonly #drawn: readonly Kind[];
  readonly #users: readonly ModelUser[];
  readonly #balanceOf: (user: ModelUser) => number;
  #last: Operation | null = null;

  constructor(
    chance: Chance,
    kinds: readonly Kind[],
    { users, balanceOf }: { users: readonly ModelUser[]; balanceOf: (user: ModelUser) => number },
  ) {
    this.#chance = chance;
    this.#drawn = kinds.flatMap((kind) => Array<Kind>(WEIGHTS[kind]).fill(kind));
    this.#users = users;
    this.#balanceOf = balanceOf;
  }

  draw(number: number, secrets: Secrets): Operation {
    let kind = this.#chance.pick(this.#drawn);
    if (kind === 'reuse of a key' && this.#last === null) kind = 'balance';
    const operation =
      kind === 'balance' || kind === 'transactions'
        ? this.#read(number, kind, secrets)
        : this.#write(number, kind, secrets);
    if (operation.command !== null && operation.sent.idempotencyKey !== null) this.#last = operation;
    return operation;
  }

  #read(number: number, kind: 'balance' | 'transactions', secrets: Secrets): Operation {
    const user = this.#chance.pick(this.#users);
    const path = kind === 'balance' ? '/get-active-balance' : '/get-all-user-transactions';
    const inQuery = this.#chance.happens(0.5);
    const endUser = this.#chance.happens(0.1) ? user.endUser.toUpperCase() : user.endUser;
    const sent: SentRequest = {
      method: 'GET',
      path: inQuery ? `${path}?end_user_id=${endUser}` : path,
      body: inQuery ? null : JSON.stringify({ end_user_id: endUser }),
      authorization: secrets.read,
      idempotencyKey: null,
    };
    return { number, kind, user, command: null, sent, refusedWith: null };
  }

  #write(number: number, kind: Kind, secrets: Secrets): Operation {
    const chance = this.#chance;
    const isReuse = kind === 'reuse of a key';
    const user = isReuse && this.#last ? this.#last.user : chance.pick(this.#users);
    const command = { ...user, actor: secrets.actor, ...this.#wish(kind, user) } as ModelCommand;
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
        return { ...refused, sent: { ...sent, body: chance.pick(INVALID)(user.endUser) }, refusedWith: 422 };
      case 'unknown API key':
        return { ...refused, sent: { ...sent, authorization: secrets.unknown }, refusedWith: 401 };
      case 'API key with the scope read':
        return { ...refused, sent: { ...sent, authorization: secrets.read }, refusedWith: 403 };
      default:
        return { number, kind, user, command, sent, refusedWith: null };
    }
  }

  #wish(kind: Kind, user: ModelUser) {
    const { chance, days } = { chance: this.#chance, days: this.#chance.pick([1, 1, 2, 2, 3, 7, 31, 365]) };
    switch (kind) {
      case 'stop-cycle':
        return { kind: 'stop-cycle' };
      case 'start-cycle':
      case 'replace-cycle':
        return {
          kind: 'start-cycle',
          amount: this.#amount(),
          validityDays: days,
          onActive: kind === 'replace-cycle' ? 'replace' : 'refuse',
        };
      case 'subtract':
        return { kind: 'subtract', amount: chance.happens(0.15) ? this.#nearBalance(user) : chance.between(1, 40) };
      default:
        return { kind: 'add', amount: this.#amount(), validityDays: days };
    }
  }

  #amount(): number {
    if (this.#chance.happens(0.005)) return MOST - this.#chance.between(0, 100);
    return this.#chance.between(1, 60);
  }

  /** The whole balance or one credit more, to find off-by-one errors. */
  #nearBalance(user: ModelUser): number {
    return Math.min(Math.max(this.#balanceOf(user) + this.#chance.between(0, 1), 1), MOST);
  }
}

function bodyOf(command: ModelCommand, inCapitals: boolean): string {
  const end_user_id = inCapitals ? command.endUser.toUpperCase() : command.endUser;
  switch (command.kind) {
    case 'add':
      return `{"end_user_id":"${end_user_id}","amount":${command.amount},"validity_days":${command.validityDays}}`;
    case 'subtract':
      return `{"end_user_id":"${end_user_id}","amount":${command.amount}}`;
    case 'start-cycle': {
      const on_active = command.onActive === 'replace' ? 'replace' : undefined;
      return JSON.stringify({ end_user_id, amount: command.amount, validity_days: command.validityDays, on_active });
    }
    case 'stop-cycle':
      return JSON.stringify({ end_user_id });
  }
}

/** Bodies that are invalid for every write. */
const INVALID: readonly ((endUser: string) => string)[] = [
  (end_user_id) => JSON.stringify({ end_user_id, amount: 0 }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: '5' }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: 1.5 }),
  (end_user_id) => `{"end_user_id":"${end_user_id}","amount":9007199254740993}`,
  (end_user_id) => `{"end_user_id":"${end_user_id}","amount":1,"amount":1}`,
  (end_user_id) => JSON.stringify({ end_user_id, amount: 5, validity_day: 3 }),
  () => JSON.stringify({ amount: 5 }),
];

/** Requests with the same key are equal if this text is equal. */
export function requestText(command: ModelCommand): string {
  const { kind } = command;
  const amount = 'amount' in command ? command.amount : '';
  const days = 'validityDays' in command ? command.validityDays : '';
  return `${kind} ${amount} ${days} ${kind === 'start-cycle' ? command.onActive : ''}`;
}
