// Makes hostile request bodies: values around the bounds in the OpenAPI document, and text that JSON parsers interpret
// in different ways.

import { gzipSync } from 'node:zlib';
import type { Random } from '../load/random.ts';
import type { Operation } from './contract.ts';

export interface FieldSchema {
  readonly name: string;
  readonly isRequired: boolean;
  readonly types: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly allowed?: readonly unknown[];
}

export interface KnownIds {
  readonly hold_id: readonly string[];
  readonly transaction_id: readonly string[];
}

export type Schemas = ReadonlyMap<Operation, readonly FieldSchema[]>;

type Member = readonly [name: string, value: string];

const NUMBERS = [
  '0',
  '-0',
  '-1',
  '1.0',
  '1.5',
  '1e0',
  '1e2',
  '1E+2',
  '5e-1',
  '1e400',
  '-1e400',
  '1e-400',
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '9007199254740991.4',
  '18446744073709551616',
  '-9223372036854775808',
  '007',
  '+1',
  '.5',
  '1.',
  '0x10',
  '1_000',
  '1,000',
  'NaN',
  'Infinity',
  '1.0000000000000000001',
  '0.99999999999999999999',
  '4e-1',
  '1'.repeat(400),
  `1${'0'.repeat(40)}`,
  '\u0661',
  '1\u00a0',
] as const;

const OTHERS = [
  'null',
  'true',
  'false',
  'True',
  'undefined',
  '""',
  '" "',
  '"5"',
  '"null"',
  "'5'",
  '[]',
  '[5]',
  '{}',
  '{"amount":5}',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"a\u0000b"',
  '"\\x41"',
  '"\\u00"',
  '"\u2028"',
  '"\u{1f4a9}"',
  '"replace"',
  '"refuse"',
  '"REPLACE"',
  '"replac\\u0065"',
  '"at_period_end"',
  '"at_period_en\\u0064"',
  '"at_period_end "',
  '/*5*/5',
  '5//',
  '',
] as const;

const NAMES = [
  '"__proto__"',
  '"constructor"',
  '"prototype"',
  '"toString"',
  '"hasOwnProperty"',
  '""',
  '"amount "',
  '"Amount"',
  '"AMOUNT"',
  '"amount\\u0000"',
  '"\\u0061mount"',
  '"am\\u006funt"',
  '"end_user_\\u0069d"',
  '"validity_day"',
  '"account"',
  '"account_id"',
  '"note"',
  '"actor"',
  '"\\ud800"',
  'amount',
  "'amount'",
  '"amount"',
  '"end_user_id"',
  '"validity_days"',
  '"validity_months"',
  '"rollover_max"',
  '"on_active"',
  '"hold_id"',
  '"transaction_id"',
  '"expires_in_seconds"',
] as const;

const NOTES = ['order 7', '', ' ', 'ünï\u{1f4a9}', 'x'.repeat(500), 'x'.repeat(501), '\u{1f4a9}'.repeat(500)] as const;

const SPACES = ['', '', '', ' ', '\n', '\t', '\r\n', '  ', '\u00a0', '\u000b', '\ufeff'] as const;

export class HostileBodies {
  readonly #random: Random;
  readonly #schemas: Schemas;
  #known: KnownIds = { hold_id: [], transaction_id: [] };

  constructor(random: Random, schemas: Schemas) {
    this.#random = random;
    this.#schemas = schemas;
  }

  know(ids: KnownIds): void {
    this.#known = ids;
  }

  plain(operation: Operation, user: string): Buffer {
    return Buffer.from(this.#written(this.#validMembers(operation, user), false));
  }

  hostile(operation: Operation, user: string): Buffer {
    const random = this.#random;
    const members = random.chance(0.4) ? this.#atBounds(operation, user) : this.#mutated(operation, user);
    const text = this.#written(members, random.chance(0.3));
    return random.chance(0.3) ? this.#spoilt(text) : Buffer.from(text);
  }

  #validMembers(operation: Operation, user: string): Member[] {
    const random = this.#random;
    const members: Member[] = [['"end_user_id"', JSON.stringify(random.chance(0.1) ? user.toUpperCase() : user)]];
    for (const { name, isRequired } of this.#schemas.get(operation) ?? []) {
      if (name === 'end_user_id' || (!isRequired && random.chance(0.6))) continue;
      members.push([JSON.stringify(name), this.#valueOf(name)]);
    }
    return members;
  }

  /** Returns a valid value, except that some notes are invalid. */
  #valueOf(name: string): string {
    const random = this.#random;
    switch (name) {
      case 'on_active':
        return random.pick(['"replace"', '"at_period_end"', '"at_period_end"']);
      case 'note':
        return JSON.stringify(random.pick(NOTES));
      case 'hold_id':
      case 'transaction_id': {
        const known = this.#known[name];
        const id = known.length > 0 && random.chance(0.8) ? random.pick(known) : random.uuid();
        return JSON.stringify(random.chance(0.1) ? id.toUpperCase() : id);
      }
      default:
        return String(1 + random.below({ amount: 50, rollover_max: 100, validity_months: 120 }[name] ?? 400));
    }
  }

  #atBounds(operation: Operation, user: string): Member[] {
    const random = this.#random;
    const members = this.#validMembers(operation, user);
    const field = random.pick(this.#schemas.get(operation) ?? []);
    const index = members.findIndex(([name]) => name === JSON.stringify(field.name));
    const values = ['"x"', '1.5', 'true', '[]', '{}', '""', 'null'];
    for (const bound of [field.minimum, field.maximum])
      if (bound !== undefined) values.push(`${bound}`, `${BigInt(bound) - 1n}`, `${BigInt(bound) + 1n}`);
    for (const one of field.allowed ?? []) values.push(JSON.stringify(one), JSON.stringify(`${one}x`));
    if (index === -1) members.push([JSON.stringify(field.name), random.pick(values)]);
    else if (random.chance(0.15)) members.splice(index, 1);
    else members[index] = [JSON.stringify(field.name), random.pick(values)];
    return members;
  }

  #mutated(operation: Operation, user: string): Member[] {
    const random = this.#random;
    let members = this.#validMembers(operation, user);
    for (let count = random.below(3); count >= 0; count--) {
      const index = random.below(members.length);
      const [name, value] = members[index] ?? ['"amount"', '1'];
      switch (random.below(6)) {
        case 0:
          members[index] = [name, random.pick(NUMBERS)];
          break;
        case 1:
          members[index] = [name, random.pick(OTHERS)];
          break;
        case 2:
          members.push([random.pick(NAMES), random.pick([value, ...NUMBERS, ...OTHERS])]);
          break;
        case 3:
          members.push([name, random.chance(0.5) ? value : random.pick(NUMBERS)]);
          break;
        case 4:
          members[index] = [random.pick(NAMES), value];
          break;
        default:
          members = members.toReversed();
      }
    }
    return members;
  }

  #written(members: readonly Member[], isSpaced: boolean): string {
    const space = () => (isSpaced ? this.#random.pick(SPACES) : '');
    const parts = members.map(([name, value]) => `${space()}${name}${space()}:${space()}${value}${space()}`);
    return `${space()}{${parts.join(',')}}${space()}`;
  }

  #spoilt(text: string): Buffer {
    const random = this.#random;
    const bytes = Buffer.from(text);
    const at = random.below(bytes.length + 1);
    const insert = (more: Uint8Array | string) =>
      Buffer.concat([bytes.subarray(0, at), Buffer.from(more as string), bytes.subarray(at)]);
    switch (random.below(20)) {
      case 0:
        return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
      case 1:
        return Buffer.from(`\ufeff${text}`, 'utf16le');
      case 2:
        return gzipSync(bytes);
      case 3:
        return Buffer.from(`${text}${random.pick(['}', ',', 'x', '\0', '{}', '//', ' 1', '\u2028'])}`);
      case 4:
        return bytes.subarray(0, at);
      case 5:
        return insert(Buffer.from([random.below(256)]));
      case 6:
        return insert(random.pick([Buffer.from([0xff]), Buffer.from([0xc0, 0x80]), Buffer.from([0xed, 0xa0, 0x80])]));
      case 7:
        bytes[Math.min(at, bytes.length - 1)] = random.below(256);
        return bytes;
      case 8:
        return Buffer.from(`[${text}]`);
      case 9:
        return Buffer.from(`"${text.replaceAll('"', '\\"')}"`);
      case 10:
        return Buffer.from('['.repeat(1 + random.below(60_000)));
      case 11:
        return Buffer.from(text.replace(/:/, `:${'['.repeat(20_000)}${']'.repeat(20_000)},"x":`));
      case 12:
        return Buffer.from(text.replace(/}\s*$/, `,"x":"${'x'.repeat(random.below(70_000))}"}`));
      case 13:
        return Buffer.from(text.padEnd(65_530 + random.below(12)));
      case 14:
        return Buffer.from(text.replace(/}\s*$/, ',}'));
      case 15:
        return Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256)));
      case 16:
        return Buffer.alloc(0);
      case 17:
        return Buffer.from(new URLSearchParams({ end_user_id: random.uuid(), amount: '5' }).toString());
      case 18:
        return Buffer.from(`{${Array.from({ length: 2_000 }, (_, index) => `"x${index}":${index}`).join(',')}}`);
      default:
        return Buffer.from(random.pick(['null', '5', '"x"', 'true', '[]', '{}', '{', ' ', '\0', '-', 'nul']));
    }
  }
}

export function schemasOf(document: {
  // biome-ignore lint/suspicious/noExplicitAny: a JSON document
  readonly paths: Readonly<Record<string, any>>;
}): Schemas {
  const schemas = new Map<Operation, FieldSchema[]>();
  for (const [path, item] of Object.entries(document.paths)) {
    const schema = item.post?.requestBody?.content?.['application/json']?.schema;
    // A request to `/test-clock` would move the clock for all other requests.
    if (schema === undefined || path === '/test-clock') continue;
    const fields = Object.entries(schema.properties as Record<string, Record<string, unknown>>);
    schemas.set(
      path.slice(1) as Operation,
      fields.map(([name, field]) => ({
        name,
        isRequired: schema.required.includes(name),
        types: [field.type].flat() as string[],
        ...(typeof field.minimum === 'number' ? { minimum: field.minimum } : {}),
        ...(typeof field.maximum === 'number' ? { maximum: field.maximum } : {}),
        ...(Array.isArray(field.enum) ? { allowed: field.enum } : {}),
      })),
    );
  }
  schemas.set('read', [{ name: 'end_user_id', isRequired: true, types: ['string'] }]);
  return schemas;
}
