// Judges a simulation. It has the reference model of the rules, is told what the store committed, when and in which
// order (never with what result), and predicts from that what every request must be answered. An answer that says
// "nothing happened" must be true for ever; one that says it is not known may go either way, and the commits tell which.

import assert from 'node:assert/strict';
import type { Command, Outcome } from '../../src/ledger/command.ts';
import { type ModelOutcome, type ModelUser, ReferenceLedger } from '../model/reference-model.ts';
import type { Reply } from './connection.ts';
import { type Disk, userName } from './disk.ts';
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

/** One request on its way: an operation may need several, and the network may make two of one. */
export interface Attempt {
  readonly operation: Operation;
  readonly watched: Watched;
  /** What the server made of it; null until then. */
  command: Command | null;
  decided: Decided | null;
  /** Whether it was told that nothing happened. */
  isDenied: boolean;
  /** How many reads of its end user there had been when it was sent. */
  readonly readsBefore: number;
}

interface Decided {
  readonly outcome: ModelOutcome | { readonly refused: 'IdempotencyKeyReused' };
  /** The first with this key; null without a key, or where it is itself the first. */
  readonly replayOf: KeptAnswer | null;
  readonly kept: KeptAnswer | null;
}

/** What the auditor believes to be kept of a key. */
interface KeptAnswer {
  readonly request: string;
  readonly outcome: ModelOutcome;
  readonly requestId: string;
  readonly at: number;
  /** As it was answered, the first time that anybody was. */
  body: string | null;
}

/** When a batch was decided: on the ledger's clock, and in the time that passes. */
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
  /** Nobody is shown an earlier instant than anybody before. */
  readAt = 0;
  /** The latest renewal that anybody was shown before it was stored. */
  renewalShown = 0;
  /** The longest list of ids that was answered, one behind the other: parts of an answer would keep all of it. */
  ids = '';
}

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export class Auditor implements Witness {
  /** The first thing that is not as it must be. */
  violation: string | null = null;
  readonly outcomes = new Map<string, number>();
  readonly #users = new Map<string, Watched>();
  /** The same, for those who ask: they name an end user by the same object each time. */
  readonly #asked = new Map<ModelUser, Watched>();
  readonly #kept = new Map<string, KeptAnswer>();
  /** Of those that are not kept any more, the last ones; and since when. */
  readonly #forgotten = new Map<string, { readonly kept: KeptAnswer; readonly at: number }>();
  /** Those that may yet be committed: what is answered for good is over, and need not be kept. */
  readonly #attempts = new Map<Command, Attempt>();
  readonly #texts: KnownTexts = new Map();
  readonly #trace: (line: string) => void;

  readonly #idempotencyMs: number;

  constructor(idempotencyMs: number, trace: (line: string) => void) {
    this.#idempotencyMs = idempotencyMs;
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
      if (command.kind === 'renew' || outcomes[index] === null) continue;
      const attempt = this.#attempts.get(command);
      if (attempt === undefined)
        this.#fail('a command is committed that no request led to, or one that was answered before');
      else this.#decide(attempt, command, loaded);
    }
  }

  #decide(attempt: Attempt, command: Command, { now, loadedAt }: Loaded): void {
    const { operation, watched } = attempt;
    if (attempt.decided !== null) this.#fail(`operation ${operation.number} is committed twice by one request`);
    if (attempt.isDenied) this.#fail(`operation ${operation.number} happened after it was told that nothing did`);
    if (now < watched.renewalShown) this.#fail(`operation ${operation.number} comes before a renewal that was shown`);
    if (operation.command === null) {
      this.#fail(`operation ${operation.number} should never have been decided`);
      return;
    }
    const { idempotencyKey } = operation.sent;
    const name = idempotencyKey === null ? null : `${userName(operation.user)}/${idempotencyKey}`;
    const known = name === null ? undefined : this.#keptAt(name, loadedAt);
    if (known !== undefined) {
      const isSame = known.request === requestText(operation.command);
      const outcome = isSame ? known.outcome : ({ refused: 'IdempotencyKeyReused' } as const);
      attempt.decided = { outcome, replayOf: isSame ? known : null, kept: null };
    } else {
      watched.ledger.wall = now;
      const outcome = watched.ledger.run(operation.command);
      const requestId = command.kind === 'renew' ? '' : (command.idempotency?.requestId ?? '');
      const request = requestText(operation.command);
      const kept = { request, outcome, requestId, at: now, body: null };
      if (name !== null) this.#kept.set(name, kept);
      attempt.decided = { outcome, replayOf: null, kept: name === null ? null : kept };
    }
    const { refused } = attempt.decided.outcome;
    const what = `${operation.kind}: ${attempt.decided.replayOf ? 'answered again' : (refused ?? 'accepted')}`;
    this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1);
    this.#trace(`operation ${operation.number} ${what}`);
  }

  read(kind: 'balance' | 'transactions', user: ModelUser, now: number): void {
    const watched = this.#of(user);
    // A read in the middle of a write sees what was before it, at an instant that may be later than that of the write.
    watched.readAt = Math.max(watched.readAt, watched.ledger.peek(), now);
    watched.renewalShown = Math.max(watched.renewalShown, watched.ledger.renewalDue(user, watched.readAt));
    const texts =
      kind === 'balance'
        ? [balanceText(user, watched.ledger.balanceAt(user, watched.readAt))]
        : transactionTexts(watched.ledger.transactionsAt(user, watched.readAt), this.#texts);
    watched.reads.push({ kind, texts });
  }

  forgotten(names: readonly string[], now: number, at: number): void {
    for (const name of names) {
      const kept = this.#kept.get(name);
      if (kept === undefined) this.#fail(`the answer to ${name} is forgotten, and was never kept`);
      else if (kept.at >= now - this.#idempotencyMs) this.#fail(`the answer to ${name} is forgotten before its time`);
      this.#kept.delete(name);
      if (kept !== undefined) this.#forgotten.set(name, { kept, at });
    }
  }

  /** What was kept of a key when a batch was loaded. */
  #keptAt(name: string, loadedAt: number): KeptAnswer | undefined {
    const forgotten = this.#forgotten.get(name);
    return this.#kept.get(name) ?? (forgotten !== undefined && forgotten.at > loadedAt ? forgotten.kept : undefined);
  }

  /** Judges what the server answers, whether or not the client gets to see it. */
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
    const kept = replayOf ?? decided.kept;
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
      if (kept !== null) assert.equal(document.request_id, kept.requestId, 'the id of the first request');
    }
    if (kept === null) return;
    if (kept.body === null) kept.body = body;
    assert.equal(body, kept.body, 'byte for byte what was answered before');
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

  /** Of two lists of the same end user the shorter is the end of the longer: what was listed once never changes. */
  #compareIds(watched: Watched, ids: string): void {
    const [shorter, longer] = ids.length < watched.ids.length ? [ids, watched.ids] : [watched.ids, ids];
    assert(longer.endsWith(shorter), 'what was listed once never changes');
    watched.ids = longer;
  }

  /** At the end: the invariants of the ledger over all that is on the disk, and the keys. */
  judgeDisk(disk: Disk): void {
    const [finding] = faultsOfDisk(disk);
    if (finding !== undefined) this.#fail(`the audit finds: ${finding}`);
    for (const name of disk.answers.keys()) if (!this.#kept.has(name)) this.#fail(`the answer to ${name} is kept`);
    for (const name of this.#kept.keys()) if (!disk.answers.has(name)) this.#fail(`the answer to ${name} is lost`);
  }

  fail(what: string): void {
    this.#fail(what);
  }

  #fail(what: string): void {
    this.#trace(`VIOLATION ${what}`);
    this.violation ??= what;
  }

  #of(user: ModelUser): Watched {
    const name = userName(user);
    const known = this.#users.get(name);
    if (known !== undefined) return known;
    const watched = new Watched();
    this.#users.set(name, watched);
    return watched;
  }
}

const BEFORE_TRANSACTION_ID = '"transaction_id":"';
const TRANSACTION_ID_LENGTH = 36;

/** A list without the ids, which nobody can predict, and these. */
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

/** Members of a problem document that are said in words, and the id of the request. */
const UNPREDICTED_COUNT = ['type', 'title', 'detail', 'request_id'].length;

/** Found out a few times faster than by an assertion that has to know the difference. */
function saysJust(document: Record<string, unknown>, expected: Record<string, unknown>): boolean {
  const names = Object.keys(expected);
  if (names.length + UNPREDICTED_COUNT !== Object.keys(document).length) return false;
  return names.every((name) => document[name] === expected[name] || textOf(document[name]) === textOf(expected[name]));
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
