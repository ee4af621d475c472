// What people type into forms, read strictly and answered kindly: a value, or a sentence that says what to type instead.
// Nothing is guessed: `1.000` is a thousand to one reader and one to another.

import { AMOUNT_MAX, type Amount } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { figure } from '../figures.ts';

export type Read<Value> =
  | { readonly value: Value; readonly error: null }
  | { readonly value: null; readonly error: string };

const GROUPED = /^\d{1,3}(?:[\s,._'’]\d{3})+$/;
const SEPARATORS = /[^\d]/g;
/** More digits than any whole number that is meant. */
const DIGITS_MAX = 40;

export function readAmount(text: string): Read<Amount> {
  const typed = text.trim();
  if (typed === '') return refused('Enter how many credits.');
  const error = wrongNumber(typed, 'Write a whole number, such as 100.');
  if (error !== null) return refused(error);
  const amount = BigInt(typed);
  if (amount === 0n) return refused('At least 1 credit.');
  if (amount > BigInt(AMOUNT_MAX)) return refused(`At most ${figure(AMOUNT_MAX)} credits.`);
  return accepted(Number(amount));
}

/** Nothing typed means the same as nothing sent to the API. */
export function readValidityDays(text: string): Read<number> {
  const typed = text.trim();
  if (typed === '') return accepted(VALIDITY_DAYS_DEFAULT);
  const error = wrongNumber(typed, 'Write a whole number of days, such as 31.');
  if (error !== null) return refused(error);
  const days = BigInt(typed);
  if (days === 0n) return refused('At least 1 day.');
  // There is no upper limit, and more days than these mean the same.
  return accepted(days > BigInt(VALIDITY_DAYS_MAX) ? VALIDITY_DAYS_MAX : Number(days));
}

/** A line of text; null when there is none. */
export function readLine(text: string, charactersMax: number): Read<string | null> {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ').trim();
  if ([...line].length > charactersMax) return refused(`At most ${figure(charactersMax)} characters.`);
  return accepted(line === '' ? null : line);
}

function wrongNumber(typed: string, otherwise: string): string | null {
  if (/^\d+$/.test(typed)) return typed.length > DIGITS_MAX ? 'That is too long for a number.' : null;
  if (GROUPED.test(typed)) return `Write digits only, without separators: ${typed.replaceAll(SEPARATORS, '')}.`;
  if (/^\d+[.,]\d+$/.test(typed)) return 'Whole numbers only.';
  if (/^[-−]\s*\d+$/.test(typed)) return 'Write the number without a sign.';
  return otherwise;
}

function accepted<Value>(value: Value): Read<Value> {
  return { value, error: null };
}

function refused(error: string): Read<never> {
  return { value: null, error };
}
