// Parses the text of form fields. The result is a value, or an error that says what to enter instead. Ambiguous numbers
// are refused: `1.000` is one thousand in some countries and one in others.

import { AMOUNT_MAX, type Amount } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { numberText } from '../figures.ts';

export type FieldReading<Value> =
  | { readonly value: Value; readonly error: null }
  | { readonly value: null; readonly error: string };

const GROUPED = /^\d{1,3}(?:[\s,._'’]\d{3})+$/;

export function readAmount(text: string): FieldReading<Amount> {
  const entered = text.trim();
  if (entered === '') return refused('Enter an amount.');
  const error = numberError(entered, 'Enter a whole number, such as 100.');
  if (error !== null) return refused(error);
  // JavaScript rounds very large numbers, but the rounded number still exceeds the maximum.
  const amount = Number(entered);
  if (amount === 0) return refused('Must be at least 1.');
  return amount > AMOUNT_MAX ? refused(`Must be at most ${numberText(AMOUNT_MAX)}.`) : accepted(amount);
}

/** An empty field means the default, as a missing field does in the API. */
export function readValidityDays(text: string): FieldReading<number> {
  const entered = text.trim();
  if (entered === '') return accepted(VALIDITY_DAYS_DEFAULT);
  const error = numberError(entered, 'Enter a whole number of days, such as 31.');
  if (error !== null) return refused(error);
  const days = Number(entered);
  // A longer validity would also end at the last instant that the ledger can store.
  return days === 0 ? refused('Must be at least 1 day.') : accepted(Math.min(days, VALIDITY_DAYS_MAX));
}

/** Returns null if the field is empty, else what `read` returns. */
export function readOptional<Value>(
  text: string,
  read: (text: string) => FieldReading<Value>,
): FieldReading<Value | null> {
  return text.trim() === '' ? accepted(null) : read(text);
}

/** Returns the text on one line; null if the field is empty. */
export function readLine(text: string, charactersMax: number): FieldReading<string | null> {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ').trim();
  if ([...line].length > charactersMax) return refused(`Must be at most ${numberText(charactersMax)} characters.`);
  return accepted(line === '' ? null : line);
}

function numberError(entered: string, otherwise: string): string | null {
  if (/^\d+$/.test(entered)) return null;
  if (GROUPED.test(entered)) return `Enter digits only, without separators: ${entered.replaceAll(/\D/g, '')}.`;
  if (/^\d+[.,]\d+$/.test(entered)) return 'Enter a whole number, without decimals.';
  if (/^[-−]\s*\d+$/.test(entered)) return 'Enter the number without a sign.';
  return otherwise;
}

function accepted<Value>(value: Value): FieldReading<Value> {
  return { value, error: null };
}

function refused(error: string): FieldReading<never> {
  return { value: null, error };
}
