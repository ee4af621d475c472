// Sends hostile requests on a few connections and checks every response. Runs with the same seed send the same
// requests, except for IDs from earlier responses.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Answer, AnswerReader } from '../load/answer-reader.ts';
import { Random } from '../load/random.ts';
import type { Operation } from './contract.ts';
import { HostileBodies, type Schemas } from './hostile-bodies.ts';
import { type HostileRequest, HostileRequests } from './hostile-requests.ts';

export interface Target {
  readonly port: number;
  readonly key: string;
  readonly cookie: string;
  readonly schemas: Schemas;
}

export interface Fault {
  readonly what: string;
  readonly bytes: Buffer;
  readonly before: readonly Buffer[];
}

export interface Fuzzed {
  readonly requests: number;
  /** The number of responses by status. The key 0 counts the requests without a response. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly faults: readonly Fault[];
}

const CLOSES = /\r\nconnection: close/i;

const LINES = 8;
const REQUESTS_PER_USER = 40;
const CREDITS = 1_000;
const FAULTS_MAX = 20;
const BEFORE = 1;

export async function fuzz(
  target: Target,
  seed: number,
  requests: number,
  isEnough: (faults: readonly Fault[]) => boolean = ({ length }) => length >= FAULTS_MAX,
): Promise<Fuzzed> {
  const statuses = new Map<number, number>();
  const faults: Fault[] = [];
  let sent = 0;
  const line = async (index: number) => {
    const random = new Random(seed * LINES + index);
    const bodies = new HostileBodies(random, target.schemas);
    const hostile = new HostileRequests(random, bodies, target);
    for (let own = 0; own < requests / LINES && !isEnough(faults); ) {
      const subject = new Subject(target, random.uuid(), statuses, faults);
      await subject.begin();
      bodies.know(subject.known);
      for (let count = 0; count < REQUESTS_PER_USER && own < requests / LINES && subject.isWhole; ) {
        const batch = hostile.batch(subject.user);
        await subject.suffer(batch);
        count += batch.length;
        own += batch.length;
        sent += batch.length;
      }
      await subject.end();
    }
  };
  await Promise.all(Array.from({ length: LINES }, (_, index) => line(index)));
  return { requests: sent, statuses, faults };
}

const LEDGER_REFUSALS = new Set([
  'InsufficientFunds',
  'CycleNotFound',
  'CycleAlreadyActive',
  'BalanceTooLarge',
  'HoldNotFound',
  'TooManyHolds',
  'TransactionNotFound',
  'NotRefundable',
  'RefundTooLarge',
  'IdempotencyKeyReused',
]);

/** These operations change neither the default list of transactions nor the sum of available and held credits. */
const MOVES_NOTHING: ReadonlySet<Operation> = new Set(['stop-cycle', 'hold', 'release']);
const READS: ReadonlySet<Operation> = new Set(['read', 'preview-change']);
const SPENDS: ReadonlySet<Operation> = new Set(['subtract', 'capture']);

class Subject {
  readonly user: string;
  readonly #target: Target;
  readonly #statuses: Map<number, number>;
  readonly #faults: Fault[];
  #wire!: Wire;
  #control!: Wire;
  readonly known: { readonly hold_id: string[]; readonly transaction_id: string[] } = {
    hold_id: [],
    transaction_id: [],
  };
  #balanceText = '';
  #credits = CREDITS;
  #transactions = 1;
  readonly #sent: Buffer[] = [];
  isWhole = true;

  constructor(target: Target, user: string, statuses: Map<number, number>, faults: Fault[]) {
    this.#target = target;
    this.user = user;
    this.#statuses = statuses;
    this.#faults = faults;
  }

  async begin(): Promise<void> {
    this.#wire = await Wire.open(this.#target.port);
    this.#control = await Wire.open(this.#target.port);
    const body = JSON.stringify({ end_user_id: this.user, amount: CREDITS });
    const head = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    const answer = await this.#ask(`POST /add HTTP/1.1\r\n${head}`, body);
    if (answer.status !== 200) throw new Error(`a plain addition returned ${answer.head}`);
    this.#balanceText = await this.#balance();
  }

  async suffer(batch: readonly HostileRequest[]): Promise<void> {
    const bytes = Buffer.concat(batch.map((request) => request.bytes));
    const isLast = batch.at(-1)?.isCutShort === true;
    const isOdd = batch.at(-1)?.verdict === 'break' || batch.at(-1)?.verdict === 'either';
    const { answers, end } = await this.#wire.exchange(bytes, batch.length, { isLast, isOdd });
    const fault = (what: string) => this.#fault(what, bytes);
    this.#sent.push(bytes);
    if (end === 'silent') fault('no response, and the connection stays open');
    if (this.#wire.reader.wrong !== null) fault(`the response is not HTTP: ${this.#wire.reader.wrong}`);
    const extra = answers.slice(batch.length);
    if (extra.some(({ status }) => !isOdd || status < 400))
      fault(`${answers.length} responses to ${batch.length} requests`);
    // After a response that closes the connection, the remaining requests of the batch must have no effect.
    const closing = answers.findIndex(({ head }) => CLOSES.test(head));
    for (const [index, request] of batch.entries()) {
      if (closing !== -1 && index > closing) break;
      const what = this.#judge(request, answers[index] ?? null);
      if (what !== null) fault(what);
    }
    if (end !== 'open' || isOdd) {
      this.#wire.close();
      this.#wire = await Wire.open(this.#target.port);
    }
    await this.#compare(batch, answers, fault);
  }

  async end(): Promise<void> {
    if (this.isWhole) {
      const { body } = await this.#ask(`GET /get-all-user-transactions?end_user_id=${this.user} HTTP/1.1\r\n`, '');
      const amounts: number[] = JSON.parse(body).transactions.map(({ amount }: { amount: number }) => amount);
      if (amounts.length !== this.#transactions)
        this.#fault(`${amounts.length} transactions, but ${this.#transactions} were accepted`, Buffer.from(body));
    }
    this.#wire.close();
    this.#control.close();
  }

  #judge(request: HostileRequest, answer: Answer | null): string | null {
    const { verdict, fields, operation } = request;
    this.#statuses.set(answer?.status ?? 0, (this.#statuses.get(answer?.status ?? 0) ?? 0) + 1);
    if (answer === null) return verdict === 'break' || verdict === 'either' ? null : 'no response';
    const { status } = answer;
    if (status >= 500) return `status ${status}: ${answer.body}`;
    if (verdict === 'form')
      return status === 200 || status === 303 || status >= 400 ? null : `status ${status} for a form`;
    const isProblem = status >= 400;
    const isPage = verdict === 'either' && /\r\ncontent-type: text\/html/i.test(answer.head);
    const shape = isProblem && !isPage ? wrongProblem(answer) : null;
    if (shape !== null) return `${shape}: ${answer.head} ${answer.body}`;
    if (verdict === 'either') return null;
    const isRefusalOfLedger = isProblem && LEDGER_REFUSALS.has(JSON.parse(answer.body).error);
    if (verdict !== 'take') return isProblem && !isRefusalOfLedger ? null : `status ${status} for an invalid request`;
    if (isProblem) return isRefusalOfLedger ? null : `a valid request was refused: ${answer.body}`;
    const body: { end_user_id?: unknown; amount?: number; next_cycle?: { amount: number }; starts_at?: unknown } =
      JSON.parse(answer.body);
    const amount = operation === 'start-cycle' ? (body.next_cycle ?? body).amount : body.amount;
    const isReadRight = operation !== 'preview-change' || typeof body.starts_at === 'string';
    const isRight =
      body.end_user_id === fields?.endUser &&
      (operation === null || READS.has(operation) ? isReadRight : fields?.amount === null || amount === fields?.amount);
    return status === 200 && isRight ? null : `a valid request returned ${status} ${answer.body}`;
  }

  async #compare(
    batch: readonly HostileRequest[],
    answers: readonly Answer[],
    fault: (what: string) => void,
  ): Promise<void> {
    const before = this.#balanceText;
    const isForm = batch[0]?.verdict === 'form';
    let isChanged = false;
    for (const [index, { operation, fields }] of batch.entries()) {
      const answer = answers[index];
      if (answer?.status !== 200 || operation === null || READS.has(operation) || fields?.endUser !== this.user)
        continue;
      isChanged = true;
      this.#learn(operation, answer);
      const { amount, next_cycle: scheduled } = JSON.parse(answer.body) as { amount: number; next_cycle?: object };
      if (MOVES_NOTHING.has(operation) || scheduled !== undefined) continue;
      this.#transactions += 1;
      this.#credits += SPENDS.has(operation) ? -amount : amount;
    }
    this.#balanceText = await this.#balance();
    const { held: heldBefore } = creditsIn(before);
    const { held, all: now } = creditsIn(this.#balanceText);
    if (isForm) {
      const isDone = answers[0]?.status === 303;
      if (!isDone && this.#balanceText !== before)
        fault(`a form that returned ${answers[0]?.status} changed the credits`);
      // Forms have their own parsers, so the fuzzer cannot predict the effect of a form.
      if (this.#balanceText !== before && batch[0]?.operation !== 'stop-cycle') this.#transactions += 1;
      this.#credits = now;
      return;
    }
    // If `held` has decreased, a lapsed hold explains the changed balance.
    if (!isChanged && this.#balanceText !== before && held >= heldBefore)
      fault(`the balance changed without an accepted write, from ${before} to ${this.#balanceText}`);
    if (now !== this.#credits) fault(`${now} credits, but ${this.#credits} according to the responses`);
    this.#credits = now;
  }

  #learn(operation: Operation, { head, body }: Answer): void {
    const id = /\r\ntransaction-id: ([0-9a-f-]{36})/i.exec(head)?.[1];
    if (operation === 'hold') this.known.hold_id.push(JSON.parse(body).hold_id);
    else if (operation !== 'stop-cycle') this.known.transaction_id.push(id ?? `no Transaction-Id: ${head}`);
  }

  #fault(what: string, bytes: Buffer): void {
    this.#faults.push({ what, bytes, before: this.#sent.slice(-BEFORE - 1, -1) });
    this.isWhole = false;
  }

  async #balance(): Promise<string> {
    return (await this.#ask(`GET /get-active-balance?end_user_id=${this.user} HTTP/1.1\r\n`, '')).body;
  }

  async #ask(start: string, body: string): Promise<Answer> {
    const head = `${start}Host: scrip\r\nAuthorization: Bearer ${this.#target.key}\r\n\r\n`;
    const { answers } = await this.#control.exchange(Buffer.from(head + body), 1, {});
    if (answers[0] === undefined) throw new Error('a plain request got no response');
    return answers[0];
  }
}

function creditsIn(balanceText: string): { readonly held: number; readonly all: number } {
  const [, active, held = 0] = /"active_balance":(\d+)(?:,"held":(\d+))?}$/.exec(balanceText) ?? [];
  return { held: Number(held), all: Number(active) + Number(held) };
}

function wrongProblem({ head, body, status }: Answer): string | null {
  if (!/\r\ncontent-type: application\/problem\+json/i.test(head)) return 'not a problem document';
  let problem: Record<string, unknown>;
  try {
    problem = JSON.parse(Buffer.from(body, 'latin1').toString());
  } catch {
    return 'not JSON';
  }
  if (problem.status !== status) return 'the status in the document is not the status of the response';
  if (problem.type !== `/problems/${problem.error}`) return 'the type in the document does not belong to its error';
  for (const member of ['error', 'title', 'detail', 'request_id'])
    if (typeof problem[member] !== 'string' || problem[member] === '') return `no ${member}`;
  return null;
}

type End = 'open' | 'closed' | 'silent';

/**
 * The maximum wait for a response. This time is longer than any response takes, and shorter than the timeouts of the
 * server.
 */
const SILENCE_MS = 5_000;
/** How long to wait for further bytes, such as a second response to a broken request. */
const SETTLED_MS = 2;

class Wire {
  reader: AnswerReader;
  readonly #socket: Socket;
  #answers: Answer[] = [];
  #isClosed = false;
  #wake: () => void = () => {};

  static async open(port: number): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setNoDelay();
    await once(socket, 'connect');
    return new Wire(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.reader = new AnswerReader((answer) => {
      if (answer.status >= 200) this.#answers.push(answer);
    });
    socket.on('data', (chunk: Buffer) => {
      this.reader.push(chunk);
      this.#wake();
    });
    const close = () => {
      this.#isClosed = true;
      this.#wake();
    };
    socket.on('error', close).on('end', close).on('close', close);
  }

  close(): void {
    this.#socket.destroy();
  }

  async exchange(
    bytes: Buffer,
    count: number,
    { isLast = false, isOdd = false },
  ): Promise<{ answers: readonly Answer[]; end: End }> {
    this.#answers = [];
    if (isLast) this.#socket.end(bytes);
    else this.#socket.write(bytes);
    const deadline = performance.now() + SILENCE_MS;
    while (!this.#isClosed && this.reader.wrong === null && (isLast || this.#answers.length < count)) {
      const left = deadline - performance.now();
      if (left <= 0) return { answers: this.#answers, end: 'silent' };
      await this.#event(left);
    }
    const isClosing = CLOSES.test(this.#answers.at(-1)?.head ?? '');
    if (isClosing)
      while (!this.#isClosed && performance.now() < deadline) await this.#event(deadline - performance.now());
    if (isClosing && !this.#isClosed) return { answers: this.#answers, end: 'silent' };
    if (!this.#isClosed && isOdd) await this.#event(SETTLED_MS);
    return { answers: this.#answers, end: this.#isClosed ? 'closed' : 'open' };
  }

  #event(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
