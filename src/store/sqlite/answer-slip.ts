// How answers stand on a slip: as bytes, with as little of each as tells it from the others. Answers of one batch share
// their instant. Whom an answer belongs to is what a posting says that is there anyway; where there is none, it is said.
//
//   slip    = prefix of request ids, instant, (batch | answer)…
//   batch   = BATCH, how much later than the slip's instant, a posting
//   answer  = flags, hash, posting before the batch's | account and end user, key, request id, request, [outcome]

import assert from 'node:assert/strict';
import type { EndUserKey } from '../../ledger/command.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import type { Instant } from '../../ledger/instant.ts';
import { outcomeOf, storedOutcome } from '../stored-outcome.ts';
import { bytesOf, uuidOf } from './uuid.ts';

/** A row of this length and what is beside it fill a page of 2 KiB. */
const SLIP_BYTES_MAX = 1_990;

const BATCH = 0x80;
const HAS_POSTING = 0x01;
const HAS_UUID_KEY = 0x02;
const HAS_PREFIX = 0x04;
const HAS_OUTCOME = 0x08;
const REQUEST_SHIFT = 4;
const REQUEST_MASK = 0x7;
/** With what requests begin; any other is written as it is. */
const REQUESTS = ['', 'subtract ', 'add ', 'start-cycle ', 'stop-cycle'];

const UUID_BYTES = 16;
const HASH_BYTES = 4;
const NUMBER_BYTES_MAX = 8;
const UTF8_BYTES_MAX = 3;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An answer as a slip has it. */
export interface SlipAnswer extends Omit<IdempotencyRecord, keyof EndUserKey> {
  readonly hash: number;
  /** Whom it belongs to, or a posting of that end user. */
  readonly owner: EndUserKey | number;
}

/** The slip to which answers are added. */
export class OpenSlip {
  #bytes = Buffer.alloc(2 * SLIP_BYTES_MAX);
  #length = 0;
  #answers = 0;
  #prefix = '';
  #beganAt: Instant = 0;
  #at: Instant = 0;
  #posting = 0;

  get answers(): number {
    return this.#answers;
  }

  get beganAt(): Instant {
    return this.#beganAt;
  }

  /** The instant of the latest answer. */
  get at(): Instant {
    return this.#at;
  }

  /** What is to be stored. */
  get entries(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  begin(requestId: string, at: Instant): void {
    this.#length = 0;
    this.#answers = 0;
    this.#prefix = requestId.slice(0, requestId.lastIndexOf('-') + 1);
    this.#beganAt = at;
    this.#reserve(this.#prefix.length * UTF8_BYTES_MAX + 2 * NUMBER_BYTES_MAX);
    this.#text(this.#prefix);
    this.#number(at);
  }

  /** @param posting no posting that an answer of the batch names is behind it */
  batch(at: Instant, posting: number): void {
    this.#reserve(1 + 2 * NUMBER_BYTES_MAX);
    this.#bytes[this.#length++] = BATCH;
    this.#number(at - this.#beganAt);
    this.#number(posting);
    this.#at = at;
    this.#posting = posting;
  }

  /** @returns whether it has found room: a slip that is empty has room for any */
  add(answer: IdempotencyRecord, hash: number, posting: number | null): boolean {
    const before = this.#length;
    this.#write(answer, hash, posting);
    if (this.#length > SLIP_BYTES_MAX && this.#answers > 0) {
      this.#length = before;
      return false;
    }
    this.#answers += 1;
    return true;
  }

  #write(answer: IdempotencyRecord, hash: number, posting: number | null): void {
    const { account, endUser, key, request, requestId } = answer;
    const outcome = storedOutcome(answer.outcome);
    const isUuid = UUID.test(key);
    const hasPrefix = this.#prefix !== '' && requestId.startsWith(this.#prefix);
    const kind = REQUESTS.findLastIndex((beginning) => request.startsWith(beginning));
    const texts = key.length + requestId.length + request.length + (outcome?.length ?? 0);
    this.#reserve(texts * UTF8_BYTES_MAX + UUID_BYTES + 8 * NUMBER_BYTES_MAX);
    this.#bytes[this.#length++] =
      (posting === null ? 0 : HAS_POSTING) |
      (isUuid ? HAS_UUID_KEY : 0) |
      (hasPrefix ? HAS_PREFIX : 0) |
      (outcome === null ? 0 : HAS_OUTCOME) |
      (kind << REQUEST_SHIFT);
    this.#length = this.#bytes.writeUInt32LE(hash, this.#length);
    if (posting === null) {
      this.#number(account);
      this.#uuid(endUser);
    } else this.#number(this.#posting - posting);
    if (isUuid) this.#uuid(key);
    else this.#text(key);
    this.#text(hasPrefix ? requestId.slice(this.#prefix.length) : requestId);
    this.#text(request.slice((REQUESTS[kind] as string).length));
    if (outcome !== null) this.#text(outcome);
  }

  /** Seven bits a byte, the lowest first; all but the last byte have the eighth. */
  #number(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, 'a slip has numbers from 0 on');
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  #uuid(uuid: string): void {
    this.#bytes.set(bytesOf(uuid), this.#length);
    this.#length += UUID_BYTES;
  }

  #text(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#number(bytes);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const longer = Buffer.alloc(2 * (this.#length + bytes));
    longer.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = longer;
  }
}

/**
 * The answers of a slip in the order in which they came.
 *
 * @param hash only those with this hash; null for all
 */
export function* answersOn(entries: Uint8Array, hash: number | null = null): Generator<SlipAnswer> {
  const reader = new SlipReader(entries);
  for (let answer = reader.next(hash); answer !== null; answer = reader.next(hash)) yield answer;
}

/** The hashes of a slip, which is all that a start wants. */
export function takeHashes(entries: Uint8Array, take: (hash: number) => void): void {
  new SlipReader(entries).hashes(take);
}

class SlipReader {
  readonly #bytes: Buffer;
  readonly #prefix: string;
  readonly #beganAt: Instant;
  #at = 0;
  #answeredAt: Instant = 0;
  #posting = 0;

  constructor(entries: Uint8Array) {
    this.#bytes = Buffer.from(entries.buffer, entries.byteOffset, entries.byteLength);
    this.#prefix = this.#text();
    this.#beganAt = this.#number();
  }

  next(wanted: number | null): SlipAnswer | null {
    for (;;) {
      const flags = this.#flags();
      if (flags === null) return null;
      const hash = this.#hash();
      if (wanted === null || hash === wanted) return this.#answer(flags, hash);
      this.#skip(flags);
    }
  }

  hashes(take: (hash: number) => void): void {
    for (let flags = this.#flags(); flags !== null; flags = this.#flags()) {
      take(this.#hash());
      this.#skip(flags);
    }
  }

  /** Of the next answer; what stands before it about its batch is read on the way. */
  #flags(): number | null {
    while (this.#at < this.#bytes.length) {
      const flags = this.#bytes[this.#at++] as number;
      if (flags !== BATCH) return flags;
      this.#answeredAt = this.#beganAt + this.#number();
      this.#posting = this.#number();
    }
    assert(this.#at === this.#bytes.length, 'a slip ends with an answer');
    return null;
  }

  #hash(): number {
    const hash = this.#bytes.readUInt32LE(this.#at);
    this.#at += HASH_BYTES;
    return hash;
  }

  #answer(flags: number, hash: number): SlipAnswer {
    const owner = flags & HAS_POSTING ? this.#posting - this.#number() : this.#owner();
    const key = flags & HAS_UUID_KEY ? this.#uuid() : this.#text();
    const id = this.#text();
    const requestId = flags & HAS_PREFIX ? this.#prefix + id : id;
    const request = `${REQUESTS[(flags >> REQUEST_SHIFT) & REQUEST_MASK]}${this.#text()}`;
    const outcome = outcomeOf(flags & HAS_OUTCOME ? this.#text() : null);
    return { hash, owner, key, requestId, request, outcome, answeredAt: this.#answeredAt };
  }

  #skip(flags: number): void {
    this.#number();
    if (!(flags & HAS_POSTING)) this.#at += UUID_BYTES;
    if (flags & HAS_UUID_KEY) this.#at += UUID_BYTES;
    else this.#skipText();
    this.#skipText();
    this.#skipText();
    if (flags & HAS_OUTCOME) this.#skipText();
  }

  #owner(): EndUserKey {
    const account = this.#number();
    return { account, endUser: this.#uuid() };
  }

  #number(): number {
    let value = 0;
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++];
      assert(byte !== undefined, 'a slip is whole');
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
    }
  }

  #uuid(): string {
    this.#at += UUID_BYTES;
    return uuidOf(this.#bytes.subarray(this.#at - UUID_BYTES, this.#at));
  }

  #skipText(): void {
    const bytes = this.#number();
    this.#at += bytes;
  }

  #text(): string {
    const bytes = this.#number();
    this.#at += bytes;
    assert(this.#at <= this.#bytes.length, 'a slip is whole');
    return this.#bytes.toString('utf8', this.#at - bytes, this.#at);
  }
}
