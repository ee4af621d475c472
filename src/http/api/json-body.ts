// Parses a JSON body. Refuses numbers that are not integers, and input that parsing would silently change: integers
// that would lose digits, duplicate members, and bytes that are not UTF-8. Most bodies pass a quick check. Bodies that
// do not pass this check are checked token by token.

import { isUtf8 } from 'node:buffer';
import { AMOUNT_NEGATIVE, type FieldError, InvalidRequest, invalidFields, PROBLEMS, pointerTo } from '../problems.ts';

/**
 * Fields that are limited only to 2^53−1. In other fields, a larger number is read as 2^53−1, which the schema accepts
 * only if the field has no upper limit.
 */
const CREDIT_FIELDS: ReadonlySet<string> = new Set(['amount', 'rollover_max']);

/** Matches a number that is not a plain integer of at most 15 digits. */
const UNUSUAL_NUMBER = /[:[,]\s*-?(?:0\d|\d{16,}|\d+[.eE])|[:[,]\s*-0/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * @returns the parsed body; undefined for an empty body
 * @throws InvalidRequest `InvalidJson`, or `InvalidField` for duplicate members, numbers that are not integers, and
 * integers that would lose digits
 */
export function readJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new InvalidRequest('InvalidJson', PROBLEMS.InvalidJson.detail('it is not encoded in UTF-8'));
  const text = body.toString('utf8');
  const value = parse(text);
  if (isPlain(text, value)) return value;
  const members = value as Record<string, unknown>;
  const errors = readMembers(text, members);
  const { amount } = members;
  const isNegative = typeof amount === 'number' && amount <= 0;
  if (errors.length > 0) throw invalidFields(errors, isNegative ? AMOUNT_NEGATIVE : null);
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidRequest('InvalidJson', PROBLEMS.InvalidJson.detail((error as Error).message));
  }
}

/**
 * Whether the body passes the quick check: it has no escapes and no unusual numbers, and it has as many colons as
 * top-level members. A body with nested members, duplicate members or colons in strings has more colons.
 */
function isPlain(text: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  if (text.includes('\\') || UNUSUAL_NUMBER.test(text)) return false;
  let members = 0;
  for (const _ in value) members += 1;
  let colons = 0;
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) colons += 1;
  return colons === members;
}

function readMembers(text: string, value: Record<string, unknown>): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const tokens = text.match(TOKEN) ?? [];
  let depth = 0;
  tokens.forEach((token, index) => {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (depth !== 1 || token !== ':') return;
    const name = JSON.parse(tokens[index - 1] as string) as string;
    const path = pointerTo(name);
    if (seen.has(name)) errors.push({ path, message: 'is a duplicate field' });
    seen.add(name);
    if (typeof value[name] !== 'number') return;
    const source = tokens[index + 1] as string;
    if (!isInteger(source)) errors.push({ path, message: 'must be a whole number' });
    else if (Number.isSafeInteger(value[name])) return;
    else if (source.startsWith('-')) value[name] = Number.MIN_SAFE_INTEGER;
    else if (CREDIT_FIELDS.has(name)) errors.push({ path, message: 'must be at most 9007199254740991' });
    else value[name] = Number.MAX_SAFE_INTEGER;
  });
  return errors;
}

/**
 * Whether a JSON number is an integer before JavaScript rounds it: `7`, `7.0` and `7e2` are integers, but
 * `7.0000000000000000001` is not.
 */
function isInteger(source: string): boolean {
  const [, , whole = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? [];
  const digits = whole + fraction;
  // The regular expression /0+$/ would take quadratic time if other digits follow the zeros.
  let significant = digits.length;
  while (digits[significant - 1] === '0') significant -= 1;
  const zeros = digits.length - significant;
  return significant === 0 || Number(exponent) - fraction.length + zeros >= 0;
}
