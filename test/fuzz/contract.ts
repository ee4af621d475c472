// Decides whether a request body is valid according to the API definition and RFC 8259. This module shares no code with
// the service, so that the fuzzer's checks are independent.

export interface Fields {
  readonly endUser: string;
  readonly amount: number | null;
}

export type Write = 'add' | 'subtract' | 'refund' | 'start-cycle' | 'stop-cycle' | 'hold' | 'capture' | 'release';
export type Operation = Write | 'preview-change' | 'read';

/** A `?` marks an optional field. */
const FIELDS: Readonly<Record<Operation, readonly string[]>> = {
  add: ['amount', 'validity_days?', 'validity_months?', 'note?'],
  subtract: ['amount', 'note?'],
  refund: ['transaction_id', 'amount?', 'validity_days?', 'note?'],
  'start-cycle': ['amount', 'validity_days?', 'validity_months?', 'rollover_max?', 'on_active?', 'note?'],
  'preview-change': ['amount', 'validity_days?', 'validity_months?', 'rollover_max?', 'on_active?', 'note?'],
  'stop-cycle': ['note?'],
  hold: ['amount', 'expires_in_seconds?', 'note?'],
  capture: ['hold_id', 'amount?', 'note?'],
  release: ['hold_id', 'note?'],
  read: [],
};

type Json =
  | { readonly type: 'null' | 'boolean' | 'array' }
  | { readonly type: 'number'; readonly source: string }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'object'; readonly members: readonly (readonly [name: string, value: Json])[] };

const BODY_BYTES_MAX = 65_536;
const AMOUNT_MAX = 2n ** 53n - 1n;
const HOLD_SECONDS_MAX = 2_592_000n;
const MONTHS_MAX = 120n;
/** The parser rejects deeper nesting. No valid body contains nested values. */
const DEPTH_MAX = 100;

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const ZERO = /^-?0+(?:\.0+)?(?:[eE][+-]?[0-9]+)?$/;
const DECIMAL = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

export function validFields(operation: Operation, body: Uint8Array): Fields | null {
  const json = body.length > BODY_BYTES_MAX ? null : parse(body);
  if (json?.type !== 'object') return null;
  const members = new Map(json.members);
  if (members.size !== json.members.length) return null;
  const fields = ['end_user_id', ...FIELDS[operation]];
  const names = new Set(fields.map((field) => field.replace('?', '')));
  for (const [name, value] of members) if (!names.has(name) || !isValid(name, value)) return null;
  for (const field of fields) if (!field.endsWith('?') && !members.has(field)) return null;
  const validities = [members.get('validity_days'), members.get('validity_months')];
  if (validities.every((value) => value?.type === 'number')) return null;
  const amount = members.get('amount');
  return {
    endUser: uuidIn(members.get('end_user_id')) as string,
    amount: amount?.type === 'number' ? Number(amount.source) : null,
  };
}

function uuidIn(value: Json | undefined): string | null {
  return value?.type === 'string' ? value.value.toLowerCase() : null;
}

function isValid(name: string, value: Json): boolean {
  switch (name) {
    case 'end_user_id':
    case 'hold_id':
    case 'transaction_id':
      return value.type === 'string' && UUID.test(value.value);
    case 'amount':
      return value.type === 'number' && isWithin(value.source, AMOUNT_MAX);
    case 'validity_days':
      return value.type === 'null' || (value.type === 'number' && isWithin(value.source, null));
    case 'validity_months':
      return value.type === 'null' || (value.type === 'number' && isWithin(value.source, MONTHS_MAX));
    case 'rollover_max':
      return value.type === 'number' && (ZERO.test(value.source) || isWithin(value.source, AMOUNT_MAX));
    case 'expires_in_seconds':
      return value.type === 'null' || (value.type === 'number' && isWithin(value.source, HOLD_SECONDS_MAX));
    case 'on_active':
      return value.type === 'string' && (value.value === 'replace' || value.value === 'at_period_end');
    case 'note':
      return value.type === 'null' || (value.type === 'string' && isNote(value.value));
    default:
      return false;
  }
}

function isNote(text: string): boolean {
  const points = [...text].map((character) => character.codePointAt(0) as number);
  const isText = points.every((point) => point !== 0 && !(point >= 0xd800 && point <= 0xdfff));
  return isText && points.length >= 1 && points.length <= 500;
}

/** Whether the number is an integer from 1 to `max`; `1.0` and `1e2` are integers. */
function isWithin(source: string, max: bigint | null): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(source) ?? [];
  let digits = BigInt(whole + fraction);
  if (digits === 0n) return false;
  let power = Number(exponent) - fraction.length;
  for (; power < 0; power += 1) {
    if (digits % 10n !== 0n) return false;
    digits /= 10n;
  }
  return max === null || (power <= 16 && digits * 10n ** BigInt(power) <= max);
}

function parse(bytes: Uint8Array): Json | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
  const reader = new JsonReader(text);
  try {
    return reader.whole();
  } catch (error) {
    if (error instanceof NotJson) return null;
    throw error;
  }
}

class NotJson extends Error {}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that a JSON string must escape
const STRING = /"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y;
const WORD = /true|false|null/y;

class JsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Json {
    const value = this.#value(0);
    if (this.#at !== this.#text.length) throw new NotJson();
    return value;
  }

  #value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new NotJson();
    this.#take(SPACE);
    const value = this.#bare(depth);
    this.#take(SPACE);
    return value;
  }

  #bare(depth: number): Json {
    const first = this.#text[this.#at];
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#array(depth);
    if (first === '"') return { type: 'string', value: this.#string() };
    const word = this.#take(WORD);
    if (word !== null) return { type: word === 'null' ? 'null' : 'boolean' };
    const source = this.#take(NUMBER);
    if (source === null) throw new NotJson();
    return { type: 'number', source };
  }

  #string(): string {
    const source = this.#take(STRING);
    if (source === null) throw new NotJson();
    return JSON.parse(source);
  }

  #object(depth: number): Json {
    const members: (readonly [string, Json])[] = [];
    this.#list('}', () => {
      this.#take(SPACE);
      const name = this.#string();
      this.#take(SPACE);
      this.#expect(':');
      members.push([name, this.#value(depth + 1)]);
    });
    return { type: 'object', members };
  }

  #array(depth: number): Json {
    this.#list(']', () => void this.#value(depth + 1));
    return { type: 'array' };
  }

  #list(end: string, item: () => void): void {
    this.#at += 1;
    this.#take(SPACE);
    if (this.#text[this.#at] === end) {
      this.#at += 1;
      return;
    }
    for (;;) {
      item();
      if (this.#text[this.#at] === end) break;
      this.#expect(',');
    }
    this.#at += 1;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw new NotJson();
    this.#at += 1;
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.#at += found[0].length;
    return found[0];
  }
}
