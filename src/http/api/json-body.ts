// Parses a JSON body, and refuses what JSON.parse changes without an error: long numbers that lose digits, a second member
// of the same name, bytes that are not UTF-8. Almost every body passes a quick check, and costs nothing extra.

import { isUtf8 } from 'node:buffer';
import { type FieldError, InvalidRequest, invalidFields, PROBLEMS, pointerTo } from '../problems.ts';

/** Fields without an upper limit: all integers beyond 2^53−1 mean the same. */
const UNBOUNDED_FIELDS: ReadonlySet<string> = new Set(['validity_days']);

/** A number that is not a plain integer of at most 15 digits. */
const UNUSUAL_NUMBER = /[:[,]\s*-?(?:0\d|\d{16,}|\d+[.eE])|[:[,]\s*-0/;
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * @returns the value, its numbers exact; undefined for an empty body
 * @throws InvalidRequest `InvalidJson`, or `InvalidField` with the fields that cannot be represented exactly
 */
export function readJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new InvalidRequest('InvalidJson', PROBLEMS.InvalidJson.detail('it is not encoded in UTF-8'));
  const text = body.toString('utf8');
  const value = parse(text);
  if (isPlain(text, value)) return value;
  const errors = readMembers(text, value as Record<string, unknown>);
  if (errors.length > 0) throw invalidFields(errors);
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidRequest('InvalidJson', PROBLEMS.InvalidJson.detail((error as Error).message));
  }
}

/** Whether each member has one colon: further ones are in strings, in nested values, or of a duplicate member. */
function isPlain(text: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  if (text.includes('\\') || UNUSUAL_NUMBER.test(text)) return false;
  let members = 0;
  for (const _ in value) members += 1;
  let colons = 0;
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) colons += 1;
  return colons === members;
}

/** Checks the members of a valid JSON object at its first level, and clamps the numbers of unbounded fields. */
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
    if (!INTEGER.test(source)) errors.push({ path, message: 'must be a whole number, written in digits only' });
    else if (Number.isSafeInteger(value[name])) return;
    else if (UNBOUNDED_FIELDS.has(name)) value[name] = source.startsWith('-') ? -1 : Number.MAX_SAFE_INTEGER;
    else errors.push({ path, message: 'must be at most 9007199254740991' });
  });
  return errors;
}
