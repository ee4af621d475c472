// Rules for email addresses and passwords. No rule requires certain kinds of characters, because NIST SP 800-63B,
// section 3.1.1.2, forbids such rules.

import { COMMON_PASSWORDS } from './common-passwords.ts';

const EMAIL_CHARACTERS_MAX = 254;
const EMAIL = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

const PASSWORD_CHARACTERS_MIN = 15;
const PASSWORD_CHARACTERS_MAX = 128;

/** The minimum length of a password if each obvious word and each run, such as `qwerty`, counts as one character. */
const UNITS_MIN = 6;

const WORDS = ['password', 'passwort', 'passphrase', 'letmein', 'welcome', 'admin', 'secret', 'iloveyou', 'changeme'];
const SUBSTITUTED: Readonly<Record<string, string>> = { '@': 'a', 4: 'a', 0: 'o', 1: 'i', 3: 'e', $: 's', 5: 's' };
/** Common sequences: the alphabet, digits, and rows and columns of the keyboard. */
const ROWS = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm', '1qaz2wsx3edc4rfv'];
const RUN_MIN = 3;

/** Shorter words in the email address or account name are ignored, because many good passwords contain them. */
const CONTEXT_WORD_CHARACTERS_MIN = 4;

interface PasswordContext {
  readonly email: string;
  readonly accountName: string;
}

export const EMAIL_ERROR = 'Enter an email address, such as ada@example.com.';

/** @returns the address as it is stored, in lower case; null if the address is invalid */
export function normalizedEmail(text: string): string | null {
  const email = text.trim().toLowerCase();
  return email.length <= EMAIL_CHARACTERS_MAX && EMAIL.test(email) ? email : null;
}

/** Returns an error for the user; null if the password is accepted. */
export function passwordError(password: string, { email, accountName }: PasswordContext): string | null {
  // One character can become many in the normalized form, which is the form that is hashed.
  const normalizedLength = [...password.normalize('NFKC')].length;
  if (Math.min([...password].length, normalizedLength) < PASSWORD_CHARACTERS_MIN)
    return `Use at least ${PASSWORD_CHARACTERS_MIN} characters. A few random words work well.`;
  if (normalizedLength > PASSWORD_CHARACTERS_MAX) return `Use at most ${PASSWORD_CHARACTERS_MAX} characters.`;
  const plain = withoutSubstitutions(password);
  const isCommon = COMMON_PASSWORDS.has(password.toLowerCase()) || isRepetition(plain) || isRepetition(password);
  if (isCommon) return 'This password is too common. Choose a different one.';
  const context = [email, ...email.split(/[@.+]/), accountName, 'scrip'].map((word) => word.toLowerCase());
  const words = [...context.filter((word) => word.length >= CONTEXT_WORD_CHARACTERS_MIN), ...WORDS].sort(
    (a, b) => b.length - a.length,
  );
  if (unitsOf(password.toLowerCase(), plain, words) >= UNITS_MIN) return null;
  return 'This password is easy to guess: it is mostly common words or keyboard patterns. Choose a different one.';
}

/** Reverts common substitutions: `P@ssw0rd` becomes `password`. */
function withoutSubstitutions(password: string): string {
  return password.toLowerCase().replaceAll(/[@40135$]/g, (sign) => SUBSTITUTED[sign] as string);
}

/** Whether the text consists of one repeated part, as `abcabcab` does. */
function isRepetition(text: string): boolean {
  for (let period = 1; period <= text.length / 2; period++) if (text.startsWith(text.slice(period))) return true;
  return false;
}

/** The length of the text when each run and each word counts as one character. */
function unitsOf(text: string, plain: string, words: readonly string[]): number {
  let units = 0;
  for (let at = 0; at < text.length; units++) {
    const word = words.find((candidate) => plain.startsWith(candidate, at) || text.startsWith(candidate, at));
    at += word ? word.length : Math.max(1, runLength(text.slice(at)));
  }
  return units;
}

/**
 * Returns the length of the run at the start of the text, or 0 if the run is shorter than `RUN_MIN`. A run is one
 * character repeated, such as `aaa`, or a part of one of `ROWS`, read forward or backward, such as `cba`.
 */
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
