// Checks every response of a simulation against a reference model, which runs the committed commands in the order of
// their commits.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type Command, endUserOf, endUserText, type Outcome } from '../../src/ledger/command.ts';
import type { IdempotencyRetention } from '../../src/store/ledger-store.ts';
import { TotalsSum } from '../../src/store/totals.ts';
import type { ModelOutcome, ModelUser } from '../model/model-types.ts';
import { ReferenceLedger, type StartCommand } from '../model/reference-model.ts';
import { sightsOfTurn } from '../model/sights.ts';
import { requestText } from './bodies.ts';
import type { Reply } from './connection.ts';
import type { Disk } from './disk.ts';
import { faultsOfDisk } from './disk-audit.ts';
import { faultsOfEvents } from './events-audit.ts';
import { differenceFromModel, faultsOfHolds } from './holds-audit.ts';
import type { Operation } from './operation.ts';
import { comparableFor, predictedBy, type Read, UNPREDICTED } from './predicted-reads.ts';
import { bodyOfSuccess, type KnownTexts, problemOf, transactionTexts } from './predicted-replies.ts';
import type { Witness, WitnessedRead } from './simulated-store.ts';

/** One request of an operation. An operation may have several: clients retry, and the network duplicates requests. */
export interface Attempt {
  readonly operation: Operation;
  readonly watched: Watched;
  command: Command | null;
  decided: Decided | null;
  isDenied: boolean;
  readonly readsBefore: number;
}

interface Decided {
  readonly outcome: ModelOutcome | { readonly refused: 'IdempotencyKeyReused' };
  readonly replayOf: Recorded | null;
  readonly record: Recorded | null;
}

interface Recorded {
  readonly request: string;
  readonly outcome: ModelOutcome;
  readonly requestId: string;
  readonly expiresAt: number;
  body: string | null;
}

interface Loaded {
  readonly now: number;
  readonly loadedAt: number;
}

class Watched {
  readonly ledger = new ReferenceLedger(0);
  readonly reads: Read[] = [];
  readonly previewed = new Set<StartCommand>();
  readAt = 0;
  dueShown = 0;
  latestId = '';
}

const NO_TRANSACTION = 'no transaction';

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export class Auditor implements Witness {
  violation: string | null = null;
  readonly outcomes = new Map<string, number>();
  readonly #users = new Map<string, Watched>();
  readonly #asked = new Map<ModelUser, Watched>();
  readonly #records = new Map<string, Recorded>();
  readonly #deleted = new Map<string, { readonly record: Recorded; readonly at: number }>();
  /** The commands that may still be committed. */
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
    if (operation.previewed !== undefined) watched.previewed.add(operation.previewed);
    return { operation, watched, command: null, decided: null, isDenied: false, readsBefore: watched.reads.length };
  }

  submitted(command: Command, attempt: Attempt): void {
    attempt.command = command;
    this.#attempts.set(command, attempt);
  }

  ledgerOf(user: ModelUser): ReferenceLedger {
    return this.#of(user).ledger;
  }

  committed(commands: readonly Command[], outcomes: readonly (Outcome | null)[], loaded: Loaded): void {
    this.#trace(`commit of ${commands.length} at ${loaded.now}`);
    for (const [index, command] of commands.entries()) {
      if (command.kind === 'settle' || outcomes[index] === null) continue;
      const attempt = this.#attempts.get(command);
      if (attempt === undefined)
        this.#fail('a command is committed without a request, or after its request was answered');
      else this.#decide(attempt, command, outcomes[index] as Outcome, loaded);
    }
  }

  #decide(attempt: Attempt, command: Command, committed: Outcome, { now, loadedAt }: Loaded): void {
    const { operation, watched } = attempt;
    if (attempt.decided !== null) this.#fail(`operation ${operation.number} is committed twice by one request`);
    if (attempt.isDenied)
      this.#fail(`operation ${operation.number} is committed after a response said that nothing happened`);
    if (now < watched.dueShown)
      this.#fail(
        `operation ${operation.number} is decided at an instant before a renewal or a lapse that a read has returned`,
      );
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
      const id = (committed.refused === null ? committed.transactionId : null) ?? NO_TRANSACTION;
      const outcome = watched.ledger.run(operation.command, id);
      if (id !== NO_TRANSACTION) this.#judgeId(watched, id);
      const requestId = command.kind === 'settle' ? '' : (command.idempotency?.requestId ?? '');
      const request = requestText(operation.command);
      const isGrant = command.kind === 'add' || command.kind === 'start-cycle';
      const expiresAt = now + (isGrant ? this.#retention.grantsMs : this.#retention.othersMs);
      const record = { request, outcome, requestId, expiresAt, body: null };
      if (name !== null) this.#records.set(name, record);
      attempt.decided = { outcome, replayOf: null, record: name === null ? null : record };
    }
    const { refused } = attempt.decided.outcome;
    this.#count(operation, attempt.decided.replayOf ? 'replayed' : (refused ?? 'accepted'));
  }

  #count({ kind, number }: Operation, result: string): void {
    const what = `${kind}: ${result}`;
    this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1);
    this.#trace(`operation ${number} ${what}`);
  }

  #countTurns(): void {
    for (const [name, { ledger }] of this.#users) {
      const turns = ledger.turnsOf(endUserOf(name));
      for (const [index, turn] of turns.entries())
        for (const what of sightsOfTurn(turn, turns[index - 1]))
          this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1);
    }
  }

  #judgeId(watched: Watched, id: string): void {
    if (!UUID_VERSION_4.test(id)) this.#fail(`${id} is not a transaction id`);
    if (id <= watched.latestId) this.#fail(`the id ${id} does not come after ${watched.latestId}`);
    watched.latestId = id;
  }

  read(read: WitnessedRead, user: ModelUser, now: number): void {
    const watched = this.#of(user);
    // A read before the commit of a write returns the state without the write, even if the read has the later instant.
    watched.readAt = Math.max(watched.readAt, watched.ledger.peek(), now);
    watched.dueShown = Math.max(watched.dueShown, watched.ledger.latestDue(user, watched.readAt));
    watched.reads.push(this.#foundBy(read, user, watched));
  }

  #foundBy(read: WitnessedRead, user: ModelUser, { ledger, readAt, previewed }: Watched): Read {
    const { kind } = read;
    switch (kind) {
      case 'balance': {
        const previews = [...previewed].map((command) => [command, ledger.previewAt(command, readAt)] as const);
        return { kind, balance: ledger.balanceAt(user, readAt), previews: new Map(previews) };
      }
      case 'balances':
        return { ...read, balances: read.instants.map((at) => ledger.balanceAt(user, at)) };
      case 'transactions':
        return { kind, texts: transactionTexts(ledger.transactionsAt(user, readAt), this.#texts) };
      case 'history':
        return { kind, entries: ledger.historyAt(user, readAt) };
    }
  }

  expired(names: readonly string[], now: number, at: number): void {
    for (const name of names) {
      const record = this.#records.get(name);
      if (record === undefined) this.#fail(`the record of ${name} is deleted but was never made`);
      else if (record.expiresAt >= now) this.#fail(`the record of ${name} is deleted before it expires`);
      this.#records.delete(name);
      if (record !== undefined) this.#deleted.set(name, { record, at });
    }
  }

  #recordAt(name: string, loadedAt: number): Recorded | undefined {
    const deleted = this.#deleted.get(name);
    return this.#records.get(name) ?? (deleted !== undefined && deleted.at > loadedAt ? deleted.record : undefined);
  }

  /** Also checks responses that never reach the client. */
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
        `operation ${operation.number} (${operation.kind} ${operation.sent.body}) got the response ${status} ${body.slice(0, 600)}: ${(error as Error).message.slice(0, 600)}`,
      );
    }
  }

  #judgeFault(attempt: Attempt, { body, headers }: Reply): void {
    const { error } = JSON.parse(body);
    const isKeyed = attempt.operation.sent.idempotencyKey !== null;
    const isUnknown = error === 'OutcomeUnknown';
    assert.equal(headers['retry-after'], isUnknown && !isKeyed ? undefined : '1');
    if (isUnknown) return;
    assert.equal(error, 'StoreUnavailable');
    assert.equal(attempt.decided, null, 'the response says that nothing happened, but the command is committed');
    attempt.isDenied = true;
  }

  #judgeWrite({ operation, decided }: Attempt, { status, headers, body }: Reply): void {
    assert(decided !== null, 'the command is not committed');
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
        const { request_id, timestamp, error_code, message, type, title, detail, ...answered } = document;
        assert.deepEqual(answered, expected);
      }
      if (record !== null) assert.equal(document.request_id, record.requestId, 'the id of the first request');
    }
    if (record === null) return;
    if (record.body === null) record.body = body;
    assert.equal(body, record.body, 'a replay has the same bytes');
  }

  #judgeRead({ operation, watched, readsBefore }: Attempt, { status, body }: Reply): void {
    assert.equal(status, (operation.previewed && JSON.parse(body).status) ?? 200);
    if (operation.previewed !== undefined) this.#count(operation, status === 200 ? 'read' : JSON.parse(body).error);
    const comparable = comparableFor(operation);
    const text = comparable(body);
    let expected: string | null = null;
    for (let index = watched.reads.length - 1; index >= readsBefore; index--) {
      const predicted = predictedBy(operation, watched.reads[index] as Read);
      if (predicted === null) continue;
      expected = comparable(predicted);
      if (expected === text) return;
    }
    assert.fail(`expected ${expected}`);
  }

  judgeDisk(disk: Disk): void {
    const [finding] = faultsOfDisk(disk);
    if (finding !== undefined) this.#fail(`the audit finds: ${finding}`);
    for (const rows of disk.users.values()) {
      const [fault] = faultsOfHolds(rows, disk.latest);
      if (fault !== undefined) this.#fail(fault);
      const difference = differenceFromModel(rows, this.#of(rows.user).ledger.historyAt(rows.user, disk.latest));
      if (difference !== null) this.#fail(difference);
    }
    this.#countTurns();
    const { records } = disk;
    for (const name of records.keys())
      if (!this.#records.has(name)) this.#fail(`the record of ${name} is stored but was never made`);
    for (const name of this.#records.keys()) if (!records.has(name)) this.#fail(`the record of ${name} is lost`);
    const counted = new TotalsSum();
    for (const entry of disk.feed) counted.add(entry);
    if (!isDeepStrictEqual(textsOf(disk.totals), textsOf(counted)))
      this.#fail('the totals differ from the sums of the postings');
    const [wrong] = faultsOfEvents(disk);
    if (wrong !== undefined) this.#fail(wrong);
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

function textsOf(sum: TotalsSum): string[] {
  const { daily, expiries } = sum.totals();
  const texts = [...daily, ...expiries.filter(({ credits }) => credits !== 0n)].map((total) =>
    JSON.stringify(total, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return texts.sort();
}

/** Much faster than an assertion that reports the difference. */
function saysJust(document: Record<string, unknown>, expected: Record<string, unknown>): boolean {
  const names = Object.keys(expected);
  if (names.length + UNPREDICTED.length !== Object.keys(document).length) return false;
  return names.every((name) => document[name] === expected[name] || textOf(document[name]) === textOf(expected[name]));
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
