// Finds out over HTTP which of the clients' writes are stored. Each write has a number, which is sent as its note.

import type { Kind, Sent } from './requests.ts';

export interface Effects {
  readonly times: ReadonlyMap<string, number>;
  readonly ids: ReadonlySet<string>;
  /** Maps the number of each hold request to the milliseconds from the creation of the hold to its lapse. */
  readonly lapses: ReadonlyMap<number, number>;
  readonly unread: ReadonlyMap<string, string>;
  readonly wrong: readonly string[];
}

/** A `start-cycle` that takes effect at the end of the period is stored as `schedule-plan`. */
export function nameOf({ kind, number }: { readonly kind: Kind | string; readonly number: number | string }): string {
  return `${kind === 'schedule-plan' ? 'start-cycle' : kind} ${number}`;
}

interface Entry {
  readonly transaction_id: string;
  readonly kind: string;
  readonly amount: number;
  readonly created_at: string;
  readonly note: string | null;
  readonly reference?: string;
  readonly refundable?: number;
  readonly cycles: readonly { readonly amount: number }[];
}

const OTHER_KINDS = ['schedule-plan', 'hold', 'release', 'lapse', 'stop-cycle', 'refund'] as const;

const END_USERS_AT_ONCE = 32;

export async function effectsOf(
  url: string,
  headers: Readonly<Record<string, string>>,
  endUsers: readonly string[],
): Promise<Effects> {
  const effects = {
    times: new Map<string, number>(),
    ids: new Set<string>(),
    lapses: new Map<number, number>(),
    unread: new Map<string, string>(),
    wrong: [] as string[],
  };
  const ask = async <Body>(path: string, endUser: string): Promise<Body> => {
    const answer = await fetch(`${url}/${path}end_user_id=${endUser}`, { headers });
    const text = await answer.text();
    if (!answer.ok) throw new Unread(`/${path} of ${endUser} returned ${answer.status}: ${text}`);
    return JSON.parse(text);
  };
  const look = async (endUser: string) => {
    const listOf = async (filter: string) => {
      const path = `get-all-user-transactions?details=true&${filter}`;
      return (await ask<{ transactions: Entry[] }>(path, endUser)).transactions;
    };
    try {
      const { holds: open } = await ask<{ holds: { hold_id: string }[] }>('get-holds?', endUser);
      const listed = await listOf('');
      const others = await Promise.all(OTHER_KINDS.map((kind) => listOf(`kind=${kind}&`)));
      const all = [...listed.filter(({ kind }) => kind !== 'refund'), ...others.flat()];
      for (const entry of all) add(effects, entry, all);
      effects.wrong.push(...contradictions(all, new Set(open.map((hold) => hold.hold_id))));
    } catch (error) {
      if (!(error instanceof Unread)) throw error;
      effects.unread.set(endUser, error.message);
    }
  };
  for (let from = 0; from < endUsers.length; from += END_USERS_AT_ONCE)
    await Promise.all(endUsers.slice(from, from + END_USERS_AT_ONCE).map(look));
  return effects;
}

class Unread extends Error {}

/** Renewals, changes of plan and lapses have no note, because no client requested them. */
function add(
  { times, ids, lapses }: { times: Map<string, number>; ids: Set<string>; lapses: Map<number, number> },
  { transaction_id: id, kind, note, reference, created_at }: Entry,
  all: readonly Entry[],
): void {
  ids.add(id);
  if (note !== null) {
    const name = nameOf({ kind, number: note });
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  if (kind !== 'lapse') return;
  const hold = all.find((each) => each.transaction_id === reference);
  if (hold !== undefined) lapses.set(Number(hold.note), Date.parse(created_at) - Date.parse(hold.created_at));
}

function* contradictions(all: readonly Entry[], open: ReadonlySet<string>): Generator<string> {
  const ends = new Map<string, string[]>();
  for (const { kind, reference = '' } of all)
    if (kind === 'capture' || kind === 'release' || kind === 'lapse')
      ends.set(reference, [...(ends.get(reference) ?? []), kind]);
  for (const { kind, transaction_id: id } of all) {
    if (kind !== 'hold') continue;
    const [end, second] = ends.get(id) ?? [];
    ends.delete(id);
    if (second !== undefined) yield `hold ${id} ended twice: with a ${end} and with a ${second}`;
    if (end === undefined && !open.has(id)) yield `hold ${id} is not open, but no transaction ended it`;
    // A hold may lapse between the read of the open holds and the read of the transactions.
    if (end !== undefined && end !== 'lapse' && open.has(id)) yield `hold ${id} ended with a ${end}, but is open`;
  }
  for (const [id, kinds] of ends) yield `hold ${id} ended with a ${kinds[0]}, but is not in the history`;
  for (const { transaction_id: id, amount, refundable } of all) {
    if (refundable === undefined) continue;
    const refunds = all.filter(({ kind, reference }) => kind === 'refund' && reference === id);
    const refunded = refunds.flatMap(({ cycles }) => cycles).reduce((sum, cycle) => sum + cycle.amount, 0);
    if (refundable < 0 || refundable !== -amount - refunded)
      yield `${refunded} of the ${-amount} credits of transaction ${id} are refunded, but ${refundable} are refundable`;
  }
}

export function lapsedInTime({ number, fields }: Sent, { lapses }: Effects): boolean {
  const ms = lapses.get(number);
  return ms === undefined || ms === 1_000 * Number(fields.expires_in_seconds);
}
