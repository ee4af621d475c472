// Which passwords are refused: those that are short, those that many have, and those whose length is only made of what
// everybody tries first. No rule about kinds of characters: NIST SP 800-63B, section 3.1.1.2.

import { COMMON_PASSWORDS } from './common-passwords.ts';

export const PASSWORD_CHARACTERS_MIN = 15;
export const PASSWORD_CHARACTERS_MAX = 128;

/** What is left of a password, once each run and each obvious word counts as one character, must be this long. */
const UNITS_MIN = 6;

/** Words that are tried first, and rows of the keyboard. */
const WORDS = ['password', 'passwort', 'passphrase', 'letmein', 'welcome', 'admin', 'secret', 'iloveyou', 'changeme'];
const ROWS = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm', '1qaz2wsx3edc4rfv'];
const RUN_MIN = 3;

/** Short ones occur in anything. */
const CONTEXT_MIN = 4;

export interface PasswordContext {
  readonly email: string;
  /** Of the account; empty when it is not known. */
  readonly accountName: string;
}

/** Null when it may be used, else a sentence for whoever chose it. */
export function whatIsWrongWithPassword(password: string, { email, accountName }: PasswordContext): string | null {
  const { length } = [...password.normalize('NFKC')];
  if (length < PASSWORD_CHARACTERS_MIN)
    return `The password needs at least ${PASSWORD_CHARACTERS_MIN} characters. A few words in a row are a good one.`;
  if (length > PASSWORD_CHARACTERS_MAX) return `The password may have at most ${PASSWORD_CHARACTERS_MAX} characters.`;
  const plain = withoutDisguise(password);
  const isCommon = COMMON_PASSWORDS.has(password.toLowerCase()) || isRepetition(plain) || isRepetition(password);
  if (isCommon) return 'This password is one of those that are tried first. Choose another one.';
  const context = [email, ...email.split(/[@.+]/), accountName, 'scrip'].map((word) => word.toLowerCase());
  const words = [...context.filter((word) => word.length >= CONTEXT_MIN), ...WORDS].sort(longestFirst);
  if (unitsOf(password.toLowerCase(), plain, words) >= UNITS_MIN) return null;
  return 'This password is made of words and rows that are easy to guess. Choose another one.';
}

/** `P@ssw0rd` is `password`. */
function withoutDisguise(password: string): string {
  const letters: Readonly<Record<string, string>> = {
    '@': 'a',
    '4': 'a',
    '0': 'o',
    '1': 'i',
    '3': 'e',
    $: 's',
    '5': 's',
  };
  return password.toLowerCase().replaceAll(/[@40135$]/g, (sign) => letters[sign] as string);
}

/** Whether it is one part again and again, and perhaps a last one cut short: `abcabcab`. */
function isRepetition(text: string): boolean {
  return (
    text.length > 1 &&
    Array.from({ length: Math.floor(text.length / 2) }, (_, index) => index + 1).some(
      (period) => text.slice(period) === text.slice(0, -period),
    )
  );
}

/** How long it is when a word, disguised or not, and a run count as one. */
function unitsOf(text: string, plain: string, words: readonly string[]): number {
  let units = 0;
  for (let at = 0; at < text.length; units++) {
    const word = words.find((candidate) => plain.startsWith(candidate, at) || text.startsWith(candidate, at));
    at += word ? word.length : Math.max(1, runLength(text.slice(at)));
  }
  return units;
}

/** Of the run with which it begins, forwards or backwards, in the alphabet, in numbers or on the keyboard; else 0. */
function runLength(text: string): number {
  let same = 1;
  while (text[same] === text[0]) same += 1;
  let longest = same;
  for (const row of ROWS.flatMap((row) => [row, [...row].reverse().join('')])) {
    for (let length = longest + 1; length <= text.length && row.includes(text.slice(0, length)); length++)
      longest = length;
  }
  return longest >= RUN_MIN ? longest : 0;
}

function longestFirst(left: string, right: string): number {
  return right.length - left.length;
}
