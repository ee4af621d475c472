// Lists transactions on a real server during writes, while the server's clock jumps forward and cycles renew.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../load/random.ts';
import { setClock } from '../soak/movable-clock.ts';

const END_USERS = 8;
const WRITERS_AN_END_USER = 3;
const JUMP_MS = 43_200_000;
const JUMP_EVERY_MS = 60;
const LIST_LIMIT = 500;

export interface Renewing {
  readonly url: string;
  readonly secret: string;
  readonly clockFile: string;
}

export interface Lists {
  lists: number;
  writes: number;
  readonly faults: string[];
}

export async function listAcrossRenewals(
  server: Renewing,
  random: Random,
  { jumps, isFaultEnough }: { readonly jumps: number; readonly isFaultEnough: boolean },
): Promise<Lists> {
  const seen: Lists = { lists: 0, writes: 0, faults: [] };
  let isOver = false;
  const until = { isOver: () => isOver };
  const endUsers = Array.from({ length: END_USERS }, () => random.uuid());
  for (const endUser of endUsers) await write(server, '/start-cycle', { end_user_id: endUser, ...CYCLE });
  const working = endUsers.flatMap((endUser) => [
    list(server, endUser, seen, until),
    ...Array.from({ length: WRITERS_AN_END_USER }, () => writeAll(server, endUser, { random, seen, ...until })),
  ]);
  for (let jump = 1; jump <= jumps && !(isFaultEnough && seen.faults.length > 0); jump++) {
    setClock(server.clockFile, jump * JUMP_MS);
    await sleep(JUMP_EVERY_MS);
  }
  isOver = true;
  await Promise.all(working);
  return seen;
}

const CYCLE = { amount: 1_000, validity_days: 1 };

async function writeAll(
  server: Renewing,
  endUser: string,
  { random, seen, isOver }: { readonly random: Random; readonly seen: Lists; readonly isOver: () => boolean },
): Promise<void> {
  while (!isOver()) {
    const choice = random.next();
    const to = { end_user_id: endUser };
    const status =
      choice < 0.6
        ? await write(server, '/subtract', { ...to, amount: 1 })
        : choice < 0.8
          ? await write(server, '/add', { ...to, amount: 1, validity_days: 1 })
          : await write(server, '/start-cycle', { ...to, ...CYCLE, on_active: 'replace' });
    seen.writes += 1;
    if (status !== 200 && status !== 402) seen.faults.push(`a write returned ${status}`);
  }
}

async function list(server: Renewing, endUser: string, seen: Lists, { isOver }: { readonly isOver: () => boolean }) {
  let before: readonly string[] = [];
  while (!isOver()) {
    const path = `/get-all-user-transactions?end_user_id=${endUser}&limit=${LIST_LIMIT}`;
    const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.secret}` } });
    const { transactions } = (await response.json()) as { transactions: { transaction_id: string }[] };
    const ids = transactions.map(({ transaction_id: id }) => id);
    seen.lists += 1;
    const fault = changed(before, ids);
    if (fault !== null) seen.faults.push(`${endUser}: ${fault}`);
    before = ids;
  }
}

export function changed(before: readonly string[], after: readonly string[]): string | null {
  const [head] = before;
  if (head === undefined) return null;
  const place = after.indexOf(head);
  if (place === -1) return after.length < LIST_LIMIT ? `${head} is no longer listed` : null;
  const same = before.slice(0, after.length - place);
  const different = same.findIndex((id, index) => after[place + index] !== id);
  return different === -1 ? null : `${after[place + different]} is listed where ${same[different]} was`;
}

async function write({ url, secret }: Renewing, path: string, body: object): Promise<number> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response.status;
}
