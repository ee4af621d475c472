// Compares the content of a restarted server, read over HTTP, with the responses that clients got before the restart.

import { type Address, type Answered, type Sent, sendAgain } from './clients.ts';

export interface Findings {
  /** Acknowledged writes that are missing. */
  lost: number;
  /** The number of requests with an unknown outcome that had an effect. */
  unansweredDone: number;
  /** A sentence for each other problem. */
  readonly wrong: string[];
}

/** The effects of all writes, identified by their unique amounts. */
interface Effects {
  readonly times: ReadonlyMap<number, number>;
  /** The amounts of stopped cycles. */
  readonly stopped: ReadonlySet<number>;
  /** Why an end user could not be read, by end user. A server does not return an end user with corrupt rows. */
  readonly unread: ReadonlyMap<string, string>;
}

/** How many of the last acknowledged requests with a key are repeated, besides those with an unknown outcome. */
const ANSWERED_SENT_AGAIN = 10;

/**
 * Compares the responses with the ledger, then repeats requests that have an idempotency key.
 *
 * @param sent all requests that concern `endUsers`
 */
export async function findingsOf(
  address: Address,
  endUsers: readonly string[],
  sent: readonly Sent[],
): Promise<Findings> {
  const effects = await effectsOf(address, endUsers);
  const findings = compared(effects, sent);
  await repeat(address, endUsers, sent, effects, findings);
  return findings;
}

/** Compares the content of the server with the responses that the clients got. */
export function compared(effects: Effects, sent: readonly Sent[]): Findings {
  const findings: Findings = { lost: 0, unansweredDone: 0, wrong: [] };
  const known = new Set(sent.map(effectOf));
  for (const amount of effects.times.keys())
    if (!known.has(amount)) findings.wrong.push(`the ledger has a transaction of ${amount} that no client requested`);
  findings.wrong.push(...effects.unread.values());
  for (const one of sent) if (!effects.unread.has(one.endUser)) compare(one, effects, findings);
  return findings;
}

/** Returns the amount of the transaction that a request makes. */
function effectOf({ kind, amount }: Sent): number {
  return kind === 'subtract' ? -amount : amount;
}

export function isAcknowledged({ answer }: Pick<Sent, 'answer'>): boolean {
  return answer?.status === 200;
}

/** Whether the outcome is unknown to the client. */
export function isUnknown({ answer }: Pick<Sent, 'answer'>): boolean {
  return answer === null || answer.error === 'OutcomeUnknown';
}

export async function effectsOf({ url, secret }: Address, endUsers: readonly string[]): Promise<Effects> {
  const times = new Map<number, number>();
  const stopped = new Set<number>();
  const headers = { authorization: `Bearer ${secret}` };
  const unread = new Map<string, string>();
  const ask = async (path: string, endUser: string) => {
    const answer = await fetch(`${url}/${path}?end_user_id=${endUser}`, { headers });
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text) as ReadBody;
    unread.set(endUser, `/${path} of ${endUser} returned ${answer.status}: ${text}`);
    return null;
  };
  const look = async (endUser: string) => {
    const list = await ask('get-all-user-transactions', endUser);
    for (const { amount } of list?.transactions ?? []) times.set(amount, (times.get(amount) ?? 0) + 1);
    const balance = await ask('get-active-balance', endUser);
    for (const { status, starting_amount: amount } of balance?.active_balance_by_cycle ?? [])
      if (status === 'canceled') stopped.add(amount);
  };
  await Promise.all(endUsers.map(look));
  return { times, stopped, unread };
}

interface ReadBody {
  readonly transactions: readonly { readonly amount: number }[];
  readonly active_balance_by_cycle: readonly { readonly status: string; readonly starting_amount: number }[];
}

function compare(one: Sent, { times, stopped }: Effects, findings: Findings): void {
  if (one.kind === 'stop-cycle') {
    if (isAcknowledged(one) && !stopped.has(JSON.parse(one.answer?.text ?? '{}').amount)) findings.lost += 1;
    return;
  }
  const found = times.get(effectOf(one)) ?? 0;
  if (found > 1) findings.wrong.push(`${one.kind} ${one.amount} was stored ${found} times`);
  if (isAcknowledged(one) && found === 0) findings.lost += 1;
  if (isUnknown(one) && found > 0) findings.unansweredDone += 1;
  if (!isAcknowledged(one) && !isUnknown(one) && found > 0)
    findings.wrong.push(`${one.kind} ${one.amount} returned ${one.answer?.status} and was stored`);
}

/**
 * Repeats requests: each response must match the ledger, and a request that had a response must get the same one again.
 */
async function repeat(
  address: Address,
  endUsers: readonly string[],
  sent: readonly Sent[],
  before: Effects,
  { wrong }: Findings,
): Promise<void> {
  const keyed = sent.filter(({ key }) => key !== null);
  // A fault stores no idempotency record, so the repeated request would be a first one.
  const decided = keyed.filter((one) => one.answer !== null && one.answer.status < 500).slice(-ANSWERED_SENT_AGAIN);
  const open = keyed.filter(isUnknown);
  const again = [...decided, ...open];
  const answers = await sendAgain(address, again);
  const after = await effectsOf(address, endUsers);
  wrong.push(...after.unread.values());
  for (const [index, one] of again.entries()) {
    const answer = answers[index] as Answered | null;
    const name = `${one.kind} ${one.amount} with key ${one.key}`;
    if (answer === null || answer.status >= 500) wrong.push(`${name} was repeated and got ${answer?.text}`);
    else if (index < decided.length) {
      if (!answer.isReplayed) wrong.push(`${name} had a response before, and was executed again`);
      else if (answer.text !== one.answer?.text)
        wrong.push(`${name} returned ${one.answer?.text}, then ${answer.text}`);
    }
    if (one.kind === 'stop-cycle' || answer === null) continue;
    if (before.unread.has(one.endUser) || after.unread.has(one.endUser)) continue;
    const wasThere = (before.times.get(effectOf(one)) ?? 0) > 0;
    if (wasThere && !answer.isReplayed) wrong.push(`${name} is stored without its idempotency record`);
    const found = after.times.get(effectOf(one)) ?? 0;
    if (found !== (answer.status === 200 ? 1 : 0))
      wrong.push(`${name} returned ${answer.status} and was stored ${found} times`);
  }
}
