// Makes random writes of all kinds. The note of each write is its number, so that tests can find its transaction.

import type { Random } from './randomness.ts';

export type Kind = 'add' | 'subtract' | 'start-cycle' | 'stop-cycle' | 'hold' | 'capture' | 'release' | 'refund';

export interface Sent {
  readonly number: number;
  readonly kind: Kind;
  readonly endUser: string;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly key: string | null;
  answer: Answered | null;
}

export interface Answered {
  readonly status: number;
  readonly error: string | null;
  readonly isReplayed: boolean;
  readonly transactionId: string | null;
  readonly text: string;
}

export function answered(head: string, text: string): Answered {
  const { error = null } = JSON.parse(text) as { error?: string };
  const transactionId = /^transaction-id: *(\S+)/im.exec(head)?.[1] ?? null;
  const isReplayed = /^idempotent-replayed: true/im.test(head);
  return { status: Number(head.split(' ')[1]), error, isReplayed, transactionId, text };
}

export function requestText({ number, kind, endUser, fields, key }: Sent, secret: string): string {
  const body = JSON.stringify({ end_user_id: endUser, ...fields, note: String(number) });
  const header = key === null ? '' : `Idempotency-Key: ${key}\r\n`;
  return `POST /${kind} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${secret}\r\n${header}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** High enough that subtractions and holds rarely fail. */
const ADDITION = 1_000_000;
const AMOUNT_MAX = 1_000;
/** Holds of 1 or 5 seconds lapse while a test runs. */
const HOLD_SECONDS = [1, 1, 5, 3_600];
const REMEMBERED = 8;

interface KnownIds {
  readonly holds: string[];
  readonly spent: string[];
}

export class KnownTransactions {
  readonly #known = new Map<string, KnownIds>();

  learn({ kind, endUser, answer }: Pick<Sent, 'kind' | 'endUser' | 'answer'>): void {
    if (answer === null || answer.transactionId === null) return;
    const known = this.#of(endUser);
    if (kind === 'hold') known.holds.push(answer.transactionId);
    if (kind === 'subtract' || kind === 'capture') known.spent.push(answer.transactionId);
  }

  /**
   * Makes a write of the wanted kind. If no hold is known for a `capture` or a `release`, makes a `hold`. If no
   * transaction is known for a `refund`, makes a `subtract`.
   */
  draw(wanted: Kind, endUser: string, random: Random): Pick<Sent, 'kind' | 'fields'> {
    const { holds, spent } = this.#of(endUser);
    const amount = 1 + Math.floor(random() * AMOUNT_MAX);
    const hold = recent(holds, random);
    const transaction = recent(spent, random);
    switch (wanted) {
      case 'add':
        return { kind: 'add', fields: { amount: ADDITION } };
      case 'start-cycle': {
        const on_active = random() < 0.5 ? 'replace' : 'at_period_end';
        return { kind: 'start-cycle', fields: { amount: ADDITION, rollover_max: AMOUNT_MAX, on_active } };
      }
      case 'stop-cycle':
        return { kind: 'stop-cycle', fields: {} };
      case 'capture':
        if (hold !== undefined) return { kind: 'capture', fields: { hold_id: hold, amount } };
        return this.draw('hold', endUser, random);
      case 'release':
        if (hold !== undefined) return { kind: 'release', fields: { hold_id: hold } };
        return this.draw('hold', endUser, random);
      case 'refund': {
        if (transaction === undefined) return this.draw('subtract', endUser, random);
        const isWhole = random() < 0.3;
        return { kind: 'refund', fields: { transaction_id: transaction, ...(isWhole ? {} : { amount }) } };
      }
      case 'hold': {
        const seconds = HOLD_SECONDS[Math.floor(random() * HOLD_SECONDS.length)] as number;
        return { kind: 'hold', fields: { amount, expires_in_seconds: seconds } };
      }
      case 'subtract':
        return { kind: 'subtract', fields: { amount } };
    }
  }

  #of(endUser: string): KnownIds {
    const known = this.#known.get(endUser) ?? { holds: [], spent: [] };
    this.#known.set(endUser, known);
    return known;
  }
}

function recent(ids: readonly string[], random: Random): string | undefined {
  return ids.at(-1 - Math.floor(random() * Math.min(REMEMBERED, ids.length)));
}

const SHARES: readonly (readonly [Kind, number])[] = [
  ['add', 0.44],
  ['subtract', 0.16],
  ['hold', 0.12],
  ['capture', 0.08],
  ['release', 0.03],
  ['refund', 0.07],
  ['start-cycle', 0.06],
  ['stop-cycle', 0.04],
];

export function someKind(random: Random): Kind {
  let left = random();
  for (const [kind, share] of SHARES) {
    if (left < share) return kind;
    left -= share;
  }
  return 'add';
}
