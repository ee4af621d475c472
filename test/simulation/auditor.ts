// Judges a simulation. It has the reference model of the rules and learns what the store committed, when and in which
// order, but never with what result. From that it predicts the response to every request. A response that says "nothing
// happened" must stay true; after one that says "unknown", the commits show which it was.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type Command, endUserText, type Outcome } from '../../src/ledger/command.ts';
import type { IdempotencyRetention } from '../../src/store/ledger-store.ts';
import { TotalsSum } from '../../src/store/totals.ts';
import { type ModelOutcome, type ModelUser, ReferenceLedger } from '../model/reference-model.ts';
import type { Reply } from './connection.ts';
import type { Disk } from './disk.ts';
import { faultsOfDisk } from './disk-audit.ts';
import { type Operation, requestText } from './operation.ts';
import {
  balanceText,
  bodyOfSuccess,
  type KnownTexts,
  listText,
  problemOf,
  transactionTexts,
} from './predicted-replies.ts';
import type { Witness } from './simulated-store.ts';

/** One request in flight: an operation may need several, and the network may duplicate one. */
export interface Attempt {
  readonly operation: Operation;
  readonly watched: Watched;
  /** The command that the server made of it; null until then. */
  command: Command | null;
  decided: Decided | null;
  /** Whether the response said that nothing happened. */
  isDenied: boolean;
  /** How many reads of its end user there were when it was sent. */
  readonly readsBefore: number;
}

interface Decided {
  readonly outcome: ModelOutcome | { readonly refused: 'IdempotencyKeyReused' };
  /** The first with this key; null without a key, or if it is the first itself. */
  readonly replayOf: Recorded | null;
  readonly record: Recorded | null;
}

/** What should be recorded for an idempotency key. */
interface Recorded {
  readonly request: string;
  readonly outcome: ModelOutcome;
  readonly requestId: string;
  readonly expiresAt: number;
  /** Of the first response. */
  body: string | null;
}

/** When a batch was decided: on the clock of the ledger, and in virtual time. */
interface Loaded {
  readonly now: number;
  readonly loadedAt: number;
}

interface Read {
  readonly kind: 'balance' | 'transactions';
  /** Of a list, one for each transaction. */
  readonly texts: readonly string[];
}

class Watched {
  readonly ledger = new ReferenceLedger(0);
  readonly reads: Read[] = [];
  /** The latest instant that a reader was shown. */
  readAt = 0;
  /** The latest renewal that a reader was shown before it was stored. */
  renewalShown = 0;
  /** The longest list of ids that was sent, as one text: parts of responses would keep all of it in memory. */
  ids = '';
}

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export class Auditor implements Witness {
  /** The first violation. */
  violation: string | null = null;
  readonly outcomes = new Map<string, number>();
  readonly #users = new Map<string, Watched>();
  /** The same by object: clients use the same object for an end user each time. */
  readonly #asked = new Map<ModelUser, Watched>();
  readonly #records = new Map<string, Recorded>();
  /** Records that were deleted, and when in virtual time. */
  readonly #deleted = new Map<string, { readonly record: Recorded; readonly at: number }>();
  /** Those that may yet be committed. */
  readonly #attempts = new Map<Command, Attempt>();
  readonly #texts: KnownTexts = new Map();
  readonly #trace: (line: string) => void;

  readonly #retention: IdempotencyRetention;

  constructor(retention: IdempotencyRetention, trace: (line: string) => void) {
    this.#retention = retention;
    this.#trace = trace;
  }

  attempt(operation: Operation): Attempt {
    const watched = this.#asked.get(operation.user) ?? this.#of(operation.user);
    this.#asked.set(operation.user, watched);
    return { operation, watched, command: null, decided: null, isDenied: false, readsBefore: watched.reads.length };
  }

  submitted(command: Command, attempt: Attempt): void {
    attempt.command = command;
    this.#attempts.set(command, attempt);
  }

  balanceOf(user: ModelUser): number {
    return this.#of(user).ledger.peekBalance(user);
  }

  committed(commands: readonly Command[], outcomes: readonly (Outcome | null)[], loaded: Loaded): void {
    this.#trace(`commit of ${commands.length} at ${loaded.now}`);
    for (const [index, command] of commands.entries()) {
      if (command.kind === 'settle' || outcomes[index] === null) continue;
      const attempt = this.#attempts.get(command);
      if (attempt === undefined)
        this.#fail('a command is committed that no request led to, or one that was answered before');
      else this.#decide(attempt, command, loaded);
    }
  }

  #decide(attempt: Attempt, command: Command, { now, loadedAt }: Loaded): void {
    const { operation, watched } = attempt;
    if (attempt.decided !== null) this.#fail(`operation ${operation.number} is committed twice by one request`);
    if (attempt.isDenied) this.#fail(`operation ${operation.number} happened after its response said that nothing did`);
    if (now < watched.renewalShown) this.#fail(`operation ${operation.number} comes before a renewal that was shown`);
    if (operation.command === null) {
      this.#fail(`operation ${operation.number} should never have been decided`);
      return;
    }
    const { idempotencyKey } = operation.sent;
    const name = idempotencyKey === null ? null : `${endUserText(operation.user)}/${idempotencyKey}`;
    const known = name === null ? undefined : this.#recordAt(name, loadedAt);
    if (known !== undefined) {
      const isSame = known.request === requestText(operation.command);
      const outcome = isSame ? known.outcome : ({ refused: 'IdempotencyKeyReused' } as const);
      attempt.decided = { outcome, replayOf: isSame ? known : null, record: null };
    } else {
      watched.ledger.wall = now;
      const outcome = watched.ledger.run(operation.command);
      const requestId = command.kind === 'settle' ? '' : (command.idempotency?.requestId ?? '');
      const request = requestText(operation.command);
      const isGrant = command.kind === 'add' || command.kind === 'start-cycle';
      const expiresAt = now + (isGrant ? this.#retention.grantsMs : this.#retention.othersMs);
      const record = { request, outcome, requestId, expiresAt, body: null };
      if (name !== null) this.#records.set(name, record);
      attempt.decided = { outcome, replayOf: null, record: name === null ? null : record };
    }
    const { refused } = attempt.decided.outcome;
    const what = `${operation.kind}: ${attempt.decided.replayOf ? 'answered again' : (refused ?? 'accepted')}`;
    this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1);
    this.#trace(`operation ${operation.number} ${what}`);
  }

  read(kind: 'balance' | 'transactions', user: ModelUser, now: number): void {
    const watched = this.#of(user);
    // A read during a write sees the state before it, at an instant that may be later than that of the write.
    watched.readAt = Math.max(watched.readAt, watched.ledger.peek(), now);
    watched.renewalShown = Math.max(watched.renewalShown, watched.ledger.renewalDue(user, watched.readAt));
    const texts =
      kind === 'balance'
        ? [balanceText(user, watched.ledger.balanceAt(user, watched.readAt))]
        : transactionTexts(watched.ledger.transactionsAt(user, watched.readAt), this.#texts);
    watched.reads.push({ kind, texts });
  }

  expired(names: readonly string[], now: number, at: number): void {
    for (const name of names) {
      const record = this.#records.get(name);
      if (record === undefined) this.#fail(`the record of ${name} is deleted, and was never made`);
      else if (record.expiresAt >= now) this.#fail(`the record of ${name} is deleted before its time`);
      this.#records.delete(name);
      if (record !== undefined) this.#deleted.set(name, { record, at });
    }
  }

  /** The record of a key when a batch was loaded. */
  #recordAt(name: string, loadedAt: number): Recorded | undefined {
    const deleted = this.#deleted.get(name);
    return this.#records.get(name) ?? (deleted !== undefined && deleted.at > loadedAt ? deleted.record : undefined);
  }

  /** Judges a response, whether or not it reaches the client. */
  judge(attempt: Attempt, reply: Reply): void {
    const { operation } = attempt;
    const { status, headers, body } = reply;
    try {
      assert.equal(headers['cache-control'], 'no-store');
      if (status === 503) this.#judgeFault(attempt, reply);
      else if (operation.refusedWith !== null) assert.equal(status, operation.refusedWith);
      else if (operation.command === null) this.#judgeRead(attempt, reply);
      else this.#judgeWrite(attempt, reply);
      if (status !== 503 && attempt.command !== null) this.#attempts.delete(attempt.command);
    } catch (error) {
      this.#fail(
        `operation ${operation.number} (${operation.kind} ${operation.sent.body}) is answered ${status} ${body.slice(0, 600)}: ${(error as Error).message.slice(0, 600)}`,
      );
    }
  }

  #judgeFault(attempt: Attempt, { body, headers }: Reply): void {
    const { error } = JSON.parse(body);
    const isKeyed = attempt.operation.sent.idempotencyKey !== null;
    const isUnknown = error === 'OutcomeUnknown';
    assert.equal(headers['retry-after'], isUnknown && !isKeyed ? undefined : '1');
    if (isUnknown) return;
    assert(error === 'Overloaded' || error === 'StoreUnavailable', `${error} is no fault that comes with 503`);
    assert.equal(attempt.decided, null, 'it says that nothing happened, and it did');
    attempt.isDenied = true;
  }

  #judgeWrite({ operation, decided }: Attempt, { status, headers, body }: Reply): void {
    assert(decided !== null, 'nothing of it is committed');
    const { outcome, replayOf } = decided;
    const record = replayOf ?? decided.record;
    assert.equal(headers['idempotent-replayed'], replayOf === null ? undefined : 'true');
    if (outcome.refused === null) {
      assert.equal(status, 200);
      assert.equal(body, bodyOfSuccess(operation, outcome));
    } else {
      const document = JSON.parse(body);
      const expected = problemOf(operation.user, outcome);
      assert.equal(expected.status, status);
      if (!saysJust(document, expected)) {
        const { request_id, type, title, detail, ...answered } = document;
        assert.deepEqual(answered, expected);
      }
      if (record !== null) assert.equal(document.request_id, record.requestId, 'the id of the first request');
    }
    if (record === null) return;
    if (record.body === null) record.body = body;
    assert.equal(body, record.body, 'a replay has the same bytes');
  }

  #judgeRead({ operation, watched, readsBefore }: Attempt, { status, body }: Reply): void {
    assert.equal(status, 200);
    const isBalance = operation.kind === 'balance';
    const { text, ids } = isBalance ? { text: body, ids: [] } : withoutIds(body);
    let expected: string | undefined;
    for (let index = watched.reads.length - 1; index >= readsBefore && expected !== text; index--) {
      const { kind, texts } = watched.reads[index] as Read;
      if (kind === operation.kind) expected = isBalance ? texts[0] : listText(operation.user, texts);
    }
    if (expected !== text) assert.fail(`it read ${expected}`);
    if (isBalance) return;
    ids.forEach((id, index) => {
      if (!UUID_VERSION_4.test(id)) assert.fail(`${id} is no id`);
      if (index > 0 && id >= (ids[index - 1] as string)) assert.fail('ids sort by creation, and none comes twice');
    });
    this.#compareIds(watched, ids.join(''));
  }

  /** Of two lists of the same end user the shorter is the end of the longer: a listed transaction never changes. */
  #compareIds(watched: Watched, ids: string): void {
    const [shorter, longer] = ids.length < watched.ids.length ? [ids, watched.ids] : [watched.ids, ids];
    assert(longer.endsWith(shorter), 'what was listed once never changes');
    watched.ids = longer;
  }

  /** At the end: the invariants of the ledger over the whole disk, the idempotency records and the totals. */
  judgeDisk(disk: Disk): void {
    const [finding] = faultsOfDisk(disk);
    if (finding !== undefined) this.#fail(`the audit finds: ${finding}`);
    const { records } = disk;
    for (const name of records.keys()) if (!this.#records.has(name)) this.#fail(`the record of ${name} was never made`);
    for (const name of this.#records.keys()) if (!records.has(name)) this.#fail(`the record of ${name} is lost`);
    const counted = new TotalsSum();
    for (const entry of disk.feed) counted.add(entry);
    if (!isDeepStrictEqual(textsOf(disk.totals), textsOf(counted)))
      this.#fail('the totals are not those of the postings');
  }

  fail(what: string): void {
    this.#fail(what);
  }

  #fail(what: string): void {
    this.#trace(`VIOLATION ${what}`);
    this.violation ??= what;
  }

  #of(user: ModelUser): Watched {
    const name = endUserText(user);
    const known = this.#users.get(name);
    if (known !== undefined) return known;
    const watched = new Watched();
    this.#users.set(name, watched);
    return watched;
  }
}

/** In one order; an hour in which nothing ends counts as missing. */
function textsOf(sum: TotalsSum): string[] {
  const { daily, expiries } = sum.totals();
  const texts = [...daily, ...expiries.filter(({ credits }) => credits !== 0n)].map((total) =>
    JSON.stringify(total, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return texts.sort();
}

const BEFORE_TRANSACTION_ID = '"transaction_id":"';
const TRANSACTION_ID_LENGTH = 36;

/** A list without its ids, which cannot be predicted; and the ids. */
function withoutIds(body: string): { text: string; ids: readonly string[] } {
  const ids: string[] = [];
  let text = '';
  let from = 0;
  for (let at = body.indexOf(BEFORE_TRANSACTION_ID); at !== -1; at = body.indexOf(BEFORE_TRANSACTION_ID, from)) {
    const begin = at + BEFORE_TRANSACTION_ID.length;
    ids.push(body.slice(begin, begin + TRANSACTION_ID_LENGTH));
    text += body.slice(from, at);
    from = begin + TRANSACTION_ID_LENGTH + '",'.length;
  }
  return { text: text + body.slice(from), ids };
}

/** Members of a problem document that are texts for people, and the request id. */
const UNPREDICTED_COUNT = ['type', 'title', 'detail', 'request_id'].length;

/** Much faster than an assertion that reports the difference. */
function saysJust(document: Record<string, unknown>, expected: Record<string, unknown>): boolean {
  const names = Object.keys(expected);
  if (names.length + UNPREDICTED_COUNT !== Object.keys(document).length) return false;
  return names.every((name) => document[name] === expected[name] || textOf(document[name]) === textOf(expected[name]));
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
