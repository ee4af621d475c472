// Clients that send concurrent calls for a few end users, and record the time and the response of each call. Half of
// the clients send idempotency keys and retry their writes. Clients without keys do not retry. No two calls for an end
// user have the same amount, so at the end, the list of transactions shows which calls with an unknown outcome took
// effect.

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../load/random.ts';
import {
  balanceText,
  CREDITS,
  type CreditsInput,
  type CreditsOutput,
  type HeldCycle,
} from './credits-specification.ts';
import { checkLinearizable, NoVerdict, type Operation } from './linearizability.ts';

export type History = Operation<CreditsInput, CreditsOutput>[];

export interface RecordedRun {
  readonly ports: () => readonly number[];
  readonly key: string;
  readonly random: Random;
  readonly endUsers: number;
  readonly clients: number;
  readonly calls: number;
}

interface HttpReply {
  readonly status: number;
  readonly transactionId: string;
  // biome-ignore lint/suspicious/noExplicitAny: any response document of the API
  readonly body: any;
}

const ANSWER_MS_MAX = 20_000;
const RETRY_PAUSE_MS = 20;
const RETRIES_MAX = 500;

export class RecordedClients {
  readonly histories = new Map<string, History>();
  /** The number of calls whose responses say that nothing happened. The histories omit these calls. */
  turnedAway = 0;
  repeated = 0;
  readonly #run: RecordedRun;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #amounts = new Map<string, Set<number>>();
  readonly #holds = new Map<string, string[]>();
  readonly #spent = new Map<string, string[]>();
  #serial = 0;

  constructor(run: RecordedRun) {
    this.#run = run;
  }

  unknown = 0;

  get operations(): number {
    return [...this.histories.values()].reduce((sum, history) => sum + history.length, 0);
  }

  async record(): Promise<void> {
    const { random, endUsers, clients, calls } = this.#run;
    const users = Array.from({ length: endUsers }, () => random.uuid());
    for (const user of users) this.histories.set(user, []);
    const client = async (index: number) => {
      for (let call = 0; call < calls; call++) {
        const user = random.pick(users);
        await this.#call(user, this.#someCall(user), index % 2 === 0);
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
    for (const user of users) await this.#settle(user);
    this.#agent.destroy();
  }

  check(): { readonly faults: string[]; readonly unchecked: number } {
    const faults: string[] = [];
    let unchecked = 0;
    for (const [user, history] of this.histories)
      try {
        const verdict = checkLinearizable(CREDITS, history);
        if (!verdict.isLinearizable) faults.push(`${user}: no order explains ${JSON.stringify(verdict.stuckAt)}`);
      } catch (error) {
        if (!(error instanceof NoVerdict)) throw error;
        unchecked += 1;
      }
    return { faults, unchecked };
  }

  async #call(user: string, input: CreditsInput, hasKey: boolean): Promise<void> {
    const idempotencyKey = hasKey && input.call !== 'balance' ? `call-${this.#serial++}` : null;
    const calledAt = performance.now();
    const reply = await this.#untilKnown(user, input, idempotencyKey);
    if (reply !== null && isTurnedAway(reply)) {
      this.turnedAway += 1;
      return;
    }
    const output = reply === null || reply.body.error === 'OutcomeUnknown' ? null : outputOf(input, reply);
    // A read without a response adds no information to the history.
    if (output === null && input.call === 'balance') return;
    if (output === null) this.unknown += 1;
    const known = output === null ? input : { ...input, ...('id' in input ? { id: reply?.transactionId ?? '' } : {}) };
    if (output?.answer === 'done' || output?.answer === 'closed') this.#remember(user, known);
    this.histories.get(user)?.push({ input: known, output, calledAt, returnedAt: performance.now() });
  }

  #remember(user: string, input: CreditsInput): void {
    if (!('id' in input)) return;
    const ids = input.call === 'hold' ? this.#holds : this.#spent;
    ids.set(user, [...(ids.get(user) ?? []), input.id]);
  }

  #someCall(user: string): CreditsInput {
    const { random } = this.#run;
    const call = random.pick(CALLS);
    const recent = (ids: readonly string[] = []) => ids.at(-1 - random.below(RECENT)) ?? ids.at(-1);
    const hold = recent(this.#holds.get(user));
    const of = recent(this.#spent.get(user));
    switch (call) {
      case 'stop':
      case 'balance':
        return { call };
      case 'release':
        return hold === undefined ? { call: 'balance' } : { call, hold };
      case 'capture':
        return hold === undefined ? { call: 'balance' } : { call, hold, amount: this.#newAmount(user), id: '' };
      case 'refund':
        return of === undefined ? { call: 'balance' } : { call, of, amount: this.#newAmount(user) };
      case 'subtract':
      case 'hold':
        return { call, amount: this.#newAmount(user), id: '' };
      case 'add':
      case 'start':
        return { call, amount: this.#newAmount(user) };
    }
  }

  #newAmount(user: string): number {
    const { random } = this.#run;
    const used = this.#amounts.get(user) ?? new Set();
    this.#amounts.set(user, used);
    let amount = 1;
    while (used.has(amount)) amount = 1 + random.below(AMOUNTS);
    used.add(amount);
    return amount;
  }

  /** Looks up the calls with an unknown outcome, and removes those that had no effect. */
  async #settle(user: string): Promise<void> {
    const history = this.histories.get(user) as History;
    const happened = [...(await this.#listOf(user, '')), ...(await this.#listOf(user, '&kind=hold'))];
    const returnedAt = performance.now();
    const settled = history.flatMap((operation): History => {
      const { input, output } = operation;
      // Calls are looked up by their amount, and a release or a stop has none.
      if (output !== null || !('amount' in input)) return [operation];
      const { call, amount } = input;
      const kind = call === 'start' ? 'start-cycle' : call;
      const entry = happened.find((each) => each.kind === kind && amountIn(each) === amount);
      if (entry === undefined) return [];
      const known = 'id' in input ? { ...input, id: entry.transaction_id } : input;
      return [{ ...operation, input: known, returnedAt, output: outputIn(call, amount, entry) }];
    });
    this.histories.set(user, settled);
  }

  async #listOf(user: string, filter: string): Promise<readonly ListedEntry[]> {
    const path = `/get-all-user-transactions?end_user_id=${user}&details=true${filter}`;
    for (let tries = 0; tries < RETRIES_MAX; tries++) {
      const reply = await this.#exchange(this.#run.random.pick(this.#run.ports()), 'GET', path, {});
      if (reply?.status === 200) return reply.body.transactions;
      await sleep(RETRY_PAUSE_MS);
    }
    assert.fail('reading the transactions failed');
  }

  async #untilKnown(user: string, input: CreditsInput, idempotencyKey: string | null): Promise<HttpReply | null> {
    for (let tries = 0; ; tries++) {
      const port = this.#run.random.pick(this.#run.ports());
      const reply = await this.#send(port, user, input, idempotencyKey);
      const isKnown = reply !== null && !isTurnedAway(reply) && reply.body.error !== 'OutcomeUnknown';
      if (isKnown || idempotencyKey === null) return reply;
      assert(tries < RETRIES_MAX, `${JSON.stringify(input)} got no outcome: ${JSON.stringify(reply)}`);
      this.repeated += 1;
      await sleep(RETRY_PAUSE_MS);
    }
  }

  #send(port: number, user: string, input: CreditsInput, idempotencyKey: string | null): Promise<HttpReply | null> {
    if (input.call === 'balance') return this.#exchange(port, 'GET', `/get-active-balance?end_user_id=${user}`, {});
    const fields = {
      end_user_id: user,
      ...('amount' in input ? { amount: input.amount } : {}),
      ...('hold' in input ? { hold_id: input.hold } : {}),
      ...('of' in input ? { transaction_id: input.of } : {}),
      ...(input.call === 'hold' ? { expires_in_seconds: HOLD_SECONDS } : {}),
    };
    const headers = { 'content-type': 'application/json' };
    const keyed = idempotencyKey === null ? headers : { ...headers, 'idempotency-key': idempotencyKey };
    return this.#exchange(port, 'POST', PATHS[input.call], keyed, JSON.stringify(fields));
  }

  /** @returns null if the connection ended without a response */
  #exchange(
    port: number,
    method: string,
    path: string,
    more: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<HttpReply | null> {
    const headers = { authorization: `Bearer ${this.#run.key}`, ...more };
    const options = { port, host: '127.0.0.1', path, method, agent: this.#agent, headers, timeout: ANSWER_MS_MAX };
    return new Promise((resolve) => {
      const outgoing = request(options, (incoming) => {
        incoming.toArray().then(
          (chunks) => {
            const { statusCode: status = 0, headers } = incoming;
            const transactionId = String(headers['transaction-id'] ?? '');
            resolve({ status, transactionId, body: JSON.parse(Buffer.concat(chunks).toString()) });
          },
          () => resolve(null),
        );
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error('no response')));
      outgoing.on('error', () => resolve(null));
      outgoing.end(body);
    });
  }
}

const CALLS = [
  ...(['add', 'add', 'subtract', 'subtract', 'subtract', 'start', 'stop'] as const),
  ...(['hold', 'hold', 'capture', 'capture', 'release', 'refund', 'refund'] as const),
  ...(['balance', 'balance', 'balance', 'balance'] as const),
] as const;
const AMOUNTS = 400;
/** A call chooses one of this many recent holds or transactions, so that concurrent calls often choose the same one. */
const RECENT = 2;
/** Longer than any history takes, so that no hold lapses. */
const HOLD_SECONDS = 86_400;

const PATHS = {
  add: '/add',
  subtract: '/subtract',
  start: '/start-cycle',
  stop: '/stop-cycle',
  hold: '/hold',
  capture: '/capture',
  release: '/release',
  refund: '/refund',
} as const;

interface ListedEntry {
  readonly transaction_id: string;
  readonly kind: string;
  readonly amount: number;
  readonly held?: number;
}

function amountIn({ kind, amount, held = 0 }: ListedEntry): number {
  return kind === 'hold' ? held : Math.abs(amount);
}

function outputIn(call: CreditsInput['call'], amount: number, { held = 0 }: ListedEntry): CreditsOutput {
  if (call === 'start') return { answer: 'started', amount };
  return call === 'capture' ? { answer: 'closed', amount, returned: Math.max(0, -held - amount) } : { answer: 'done' };
}

function isTurnedAway({ body }: HttpReply): boolean {
  return body.error === 'StoreUnavailable' || body.error === 'Overloaded';
}

function outputOf({ call }: CreditsInput, { status, body }: HttpReply): CreditsOutput {
  switch (`${status} ${body.error ?? call}`) {
    case '200 add':
    case '200 subtract':
    case '200 hold':
    case '200 refund':
      return { answer: 'done' };
    case '200 capture':
    case '200 release':
      return { answer: 'closed', amount: body.amount, returned: body.returned };
    case '200 start':
      return { answer: 'started', amount: body.amount };
    case '200 stop':
      return { answer: 'stopped', amount: body.amount };
    case '200 balance':
      return { answer: 'balance', text: balanceText(body.active_balance_by_cycle.map(heldCycle), body.held ?? 0) };
    case '402 InsufficientFunds':
      return { answer: 'insufficient', available: body.available };
    case '409 CycleAlreadyActive':
      return { answer: 'already active', amount: body.cycle.amount };
    case '404 CycleNotFound':
      return { answer: 'no cycle' };
    case '404 HoldNotFound':
      return { answer: 'no hold' };
    case '409 RefundTooLarge':
      return { answer: 'too large', refundable: body.refundable };
    default:
      throw new Error(`${call} returned ${status} ${JSON.stringify(body)}`);
  }
}

function heldCycle(entry: {
  cycle_type: string;
  status: HeldCycle['kind'];
  amount: number;
  starting_amount: number;
}): HeldCycle {
  const kind = entry.cycle_type === 'one-time' ? 'one-time' : entry.status;
  return { kind, amount: entry.starting_amount, left: entry.amount };
}
