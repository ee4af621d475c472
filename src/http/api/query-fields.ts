// The fields of a GET request, which can be in the query string, in a JSON body, or in both.

import type { preValidationHookHandler } from 'fastify';
import { isInstant } from '../../ledger/instant.ts';
import { instantIn, type Rounding, unclampedInstantIn } from '../../ledger/instant-text.ts';
import { invalidField, invalidFields, pointerTo } from '../problems.ts';

/** The fields of a request before they are validated. */
type Fields = Readonly<Record<string, unknown>>;

/** The names of the fields to convert from text, grouped by type. */
interface Typed extends InstantRules {
  readonly integers?: readonly string[];
  readonly booleans?: readonly string[];
  readonly instants?: readonly string[];
}

interface InstantRules {
  /** How instants that are more precise than a millisecond are rounded. */
  readonly rounding?: Rounding;
  /** Whether instants before 1970 or after the year 9999 are refused. By default, they are clamped. */
  readonly isRangeStrict?: boolean;
}

/** Merges the body into the query, for calls whose fields are all plain text. */
export const mergeBodyIntoQuery: preValidationHookHandler = fieldsReader({});

/**
 * Merges the body into `request.query`, and converts the fields that `typed` names, so that they can be validated.
 * Instants are converted to UTC.
 */
export function fieldsReader(typed: Typed): preValidationHookHandler {
  return (request, _reply, done) => {
    const merged = mergedFields(readQuery(request.query as Fields, typed), request.body);
    request.query = typed.instants === undefined ? merged : readInstants(merged, typed.instants, typed);
    done();
  };
}

const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const TRUTH: Readonly<Record<string, boolean>> = { true: true, false: false };

/**
 * Converts integer and boolean fields from strings. A string that cannot be converted stays unchanged, so that
 * validation refuses it.
 */
function readQuery(query: Fields, { integers = [], booleans = [] }: Typed): Fields {
  if (integers.length + booleans.length === 0) return query;
  const read: Record<string, unknown> = { ...query };
  for (const name of integers) {
    const text = query[name];
    if (typeof text === 'string' && INTEGER.test(text)) read[name] = Number(text);
  }
  for (const name of booleans) {
    const text = query[name];
    if (typeof text === 'string' && Object.hasOwn(TRUTH, text)) read[name] = TRUTH[text];
  }
  return read;
}

/**
 * Merges the query string and the body. A field that is in both must have the same value in both.
 *
 * @throws InvalidRequest
 */
function mergedFields(query: Fields, body: unknown): Fields {
  const repeated = Object.keys(query).filter((name) => Array.isArray(query[name]));
  if (repeated.length > 0)
    throw invalidFields(
      repeated.map((name) => ({ path: pointerTo(name), message: 'occurs more than once in the query string' })),
    );
  if (body === undefined) return query;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalidField('', 'must be a JSON object');
  const differing = Object.entries(body).filter(
    ([name, value]) => Object.hasOwn(query, name) && comparable(name, query[name]) !== comparable(name, value),
  );
  if (differing.length > 0)
    throw invalidFields(
      differing.map(([name]) => ({ path: pointerTo(name), message: 'differs between the body and the query string' })),
    );
  return { ...query, ...body };
}

/** Returns the value in lowercase if it is an end user ID, because UUIDs that differ only in case are equal. */
function comparable(name: string, value: unknown): unknown {
  return name === 'end_user_id' && typeof value === 'string' ? value.toLowerCase() : value;
}

/** Matches a time zone whose plus sign was sent unencoded in a query string, and was therefore decoded as a space. */
const LOST_PLUS = / \d\d:?\d\d$/;

/** @throws InvalidRequest if a field is not an instant, or is outside the range that `rules` requires */
export function readInstants(fields: Fields, names: readonly string[], rules: InstantRules): Fields {
  if (names.every((name) => fields[name] === undefined)) return fields;
  const errors = [];
  const read: Record<string, unknown> = { ...fields };
  for (const name of names) {
    const text = fields[name];
    if (typeof text !== 'string') continue;
    const instant = rules.isRangeStrict ? unclampedInstantIn(text, rules.rounding) : instantIn(text, rules.rounding);
    if (instant === null) errors.push({ path: pointerTo(name), message: messageFor(text) });
    else if (!isInstant(instant))
      errors.push({ path: pointerTo(name), message: 'must be in the years 1970 to 9999, in UTC' });
    else read[name] = new Date(instant).toISOString();
  }
  if (errors.length === 0) return read;
  throw invalidFields(errors);
}

function messageFor(text: string): string {
  const message = 'must be an ISO 8601 date and time with a time zone, such as 2026-11-20T08:00:00.123Z';
  return LOST_PLUS.test(text) ? `${message}; in a query string, write + as %2B` : message;
}
