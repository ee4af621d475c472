// Parses the text of a form field. Returns a value, or an error that says what to enter instead. Ambiguous numbers are
// refused: `1.000` is one thousand in some countries and one in others.

import { AMOUNT_MAX, type Amount } from '../../ledger/amount.ts';
import { type Instant, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { instantIn } from '../../ledger/instant-text.ts';
import { VALIDITY_MONTHS_MAX, type Validity } from '../../ledger/plan.ts';
import { numberText } from '../figures.ts';

export type FieldReading<Value> =
  | { readonly value: Value; readonly error: null }
  | { readonly value: null; readonly error: string };

const GROUPED = /^\d{1,3}(?:[\s,._'’]\d{3})+$/;

export function readAmount(text: string): FieldReading<Amount> {
  if (text.trim() === '') return refused('Enter an amount.');
  const reading = readNumber(text, 'Enter a whole number, such as 100.', 'Enter at least 1.');
  // JavaScript rounds very large numbers, but the rounded number still exceeds the maximum.
  const isTooLarge = reading.value !== null && reading.value > AMOUNT_MAX;
  return isTooLarge ? refused(`Enter at most ${numberText(AMOUNT_MAX)}.`) : reading;
}

export function readDays(text: string): FieldReading<number> {
  const reading = readNumber(text, 'Enter a whole number of days, such as 31.', 'Enter at least 1 day.');
  // A cycle with the maximum validity ends at the last instant of the ledger, so a longer validity has the same effect.
  return reading.value === null ? reading : accepted(Math.min(reading.value, VALIDITY_DAYS_MAX));
}

export function readValidityMonths(text: string): FieldReading<number> {
  const reading = readNumber(text, 'Enter a whole number of months, such as 1.', 'Enter at least 1 month.');
  const isTooLarge = reading.value !== null && reading.value > VALIDITY_MONTHS_MAX;
  return isTooLarge ? refused(`Enter at most ${VALIDITY_MONTHS_MAX} months.`) : reading;
}

/** @param unit `months`; any other text means days */
export function readValidity(text: string, unit: string): FieldReading<Validity> {
  const isMonths = unit === 'months';
  const { value, error } = isMonths ? readValidityMonths(text) : readDays(text);
  if (error !== null) return refused(error);
  return accepted(
    isMonths ? { validityDays: null, validityMonths: value } : { validityDays: value, validityMonths: null },
  );
}

/** An empty field or 0 means that no credits roll over. */
export function readRolloverMax(text: string): FieldReading<Amount | 0> {
  return /^0*$/.test(text.trim()) ? accepted(0) : readAmount(text);
}

/** Returns null for an empty field; otherwise calls `read`. */
export function readOptional<Value>(
  text: string,
  read: (text: string) => FieldReading<Value>,
): FieldReading<Value | null> {
  return text.trim() === '' ? accepted(null) : read(text);
}

/** Replaces line breaks and other control characters with spaces. Returns null for an empty field. */
export function readLine(text: string, charactersMax: number): FieldReading<string | null> {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ').trim();
  if ([...line].length > charactersMax) return refused(`Use at most ${numberText(charactersMax)} characters.`);
  return accepted(line === '' ? null : line);
}

/** Reads a date and a time in UTC. */
export function readInstant(text: string): FieldReading<Instant> {
  const instant = instantIn(`${text.trim().replace(' ', 'T')}Z`);
  return instant === null ? refused('Enter a date and a time, such as 2026-12-20 08:00.') : accepted(instant);
}

/** @returns a number of at least 1 */
function readNumber(text: string, otherwise: string, zero: string): FieldReading<number> {
  const entered = text.trim();
  if (/^\d+$/.test(entered)) return Number(entered) === 0 ? refused(zero) : accepted(Number(entered));
  if (GROUPED.test(entered)) return refused(`Enter digits only, without separators: ${entered.replaceAll(/\D/g, '')}.`);
  if (/^\d+[.,]\d+$/.test(entered)) return refused('Enter a whole number, without decimals.');
  if (/^[-−]\s*\d+$/.test(entered)) return refused('Enter the number without a sign.');
  return refused(otherwise);
}

function accepted<Value>(value: Value): FieldReading<Value> {
  return { value, error: null };
}

function refused(error: string): FieldReading<never> {
  return { value: null, error };
}
