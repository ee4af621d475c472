// Compares the ledger of a server with the responses that clients have received.

import { type Address, sendAgain } from './clients.ts';
import { type Effects, effectsOf, lapsedInTime, nameOf } from './effects.ts';
import type { Answered, Sent } from './requests.ts';

export interface Findings {
  lost: number;
  unansweredDone: number;
  readonly wrong: string[];
}

const ANSWERED_SENT_AGAIN = 10;

export async function findingsOf(
  address: Address,
  endUsers: readonly string[],
  sent: readonly Sent[],
): Promise<Findings> {
  const effects = await readEffects(address, endUsers);
  const findings = compared(effects, sent);
  await repeat(address, endUsers, sent, effects, findings);
  return findings;
}

export function compared(effects: Effects, sent: readonly Sent[]): Findings {
  const findings: Findings = { lost: 0, unansweredDone: 0, wrong: [] };
  const known = new Set(sent.flatMap(namesOf));
  for (const name of effects.times.keys())
    if (!known.has(name)) findings.wrong.push(`the ledger has a transaction for ${name}, which no client requested`);
  findings.wrong.push(...effects.wrong);
  findings.wrong.push(...effects.unread.values());
  for (const one of sent) if (!effects.unread.has(one.endUser)) compare(one, effects, findings);
  return findings;
}

function namesOf({ kind, number }: Sent): string[] {
  return kind === 'start-cycle'
    ? [nameOf({ kind, number }), nameOf({ kind: 'stop-cycle', number })]
    : [nameOf({ kind, number })];
}

function timesOf({ transactionId }: Answered): number {
  return transactionId === null ? 0 : 1;
}

export function isAcknowledged({ answer }: Pick<Sent, 'answer'>): boolean {
  return answer?.status === 200;
}

export function isUnknown({ answer }: Pick<Sent, 'answer'>): boolean {
  return answer === null || answer.error === 'OutcomeUnknown';
}

export function readEffects({ url, secret }: Address, endUsers: readonly string[]): Promise<Effects> {
  return effectsOf(url, { authorization: `Bearer ${secret}` }, endUsers);
}

function compare(one: Sent, effects: Effects, findings: Findings): void {
  const { times, ids } = effects;
  const { answer } = one;
  const name = nameOf(one);
  const found = times.get(name) ?? 0;
  if (found > 1) findings.wrong.push(`${name} was stored ${found} times`);
  if (answer !== null && isAcknowledged(one)) {
    if (found < timesOf(answer)) findings.lost += 1;
    else if (answer.transactionId !== null && !ids.has(answer.transactionId))
      findings.wrong.push(`${name} was stored, but not with the id ${answer.transactionId}`);
    if (timesOf(answer) === 0 && found > 0)
      findings.wrong.push(`${name} got a response without a transaction, but was stored`);
  }
  if (isUnknown(one) && found > 0) findings.unansweredDone += 1;
  if (!isAcknowledged(one) && !isUnknown(one) && found > 0)
    findings.wrong.push(`${name} returned ${answer?.status}, but was stored`);
  if (!lapsedInTime(one, effects)) findings.wrong.push(`${name} did not lapse at the requested instant`);
}

/** If the first response had a status below 500, a repeated request must get the same response again. */
async function repeat(
  address: Address,
  endUsers: readonly string[],
  sent: readonly Sent[],
  before: Effects,
  { wrong }: Findings,
): Promise<void> {
  const keyed = sent.filter(({ key }) => key !== null);
  // A request that got a 5xx may have no idempotency record, so Scrip may execute the repeated request.
  const decided = keyed.filter((one) => one.answer !== null && one.answer.status < 500).slice(-ANSWERED_SENT_AGAIN);
  const open = keyed.filter(isUnknown);
  const again = [...decided, ...open];
  const answers = await sendAgain(address, again);
  const after = await readEffects(address, endUsers);
  wrong.push(...after.unread.values(), ...after.wrong);
  for (const [index, one] of again.entries()) {
    const answer = answers[index] as Answered | null;
    const name = `${nameOf(one)} with key ${one.key}`;
    if (answer === null || answer.status >= 500) wrong.push(`${name} was repeated and got ${answer?.text}`);
    else if (index < decided.length) {
      if (!answer.isReplayed) wrong.push(`${name} had a response before, but was executed again`);
      else if (answer.text !== one.answer?.text)
        wrong.push(`${name} returned ${one.answer?.text}, then ${answer.text}`);
    }
    if (answer === null) continue;
    if (before.unread.has(one.endUser) || after.unread.has(one.endUser)) continue;
    const wasThere = (before.times.get(nameOf(one)) ?? 0) > 0;
    if (wasThere && !answer.isReplayed) wrong.push(`${name} is stored without its idempotency record`);
    const found = after.times.get(nameOf(one)) ?? 0;
    if (found !== (answer.status === 200 ? timesOf(answer) : 0))
      wrong.push(`${name} returned ${answer.status} and was stored ${found} times`);
  }
}
