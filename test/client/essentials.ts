// What must hold of the client wherever it runs, as a program that needs nothing of its runtime but what the client
// needs: Node, Deno, Bun and workers run this very file. What the services saw of it is looked at by whoever runs it.

import type * as Client from '../../client/src/scrip.ts';

/** Where the program finds its services. */
export interface Places {
  /** A real Scrip, and a key for it with the scope `write`. */
  readonly url: string;
  readonly key: string;
  /** Breaks the connection off the first time that it is asked, after the write had its effect. */
  readonly dropping: string;
  /** Sends everybody elsewhere. */
  readonly redirecting: string;
  /** Sends headers and never a body. */
  readonly silent: string;
}

/** @throws Error whose message is what does not hold */
export async function tryEssentials(client: typeof Client, places: Places): Promise<void> {
  const scrip = new client.Scrip({ baseUrl: places.url, apiKey: places.key });
  await movesCredits(client, scrip);
  await goesThroughPages(scrip);
  await outlivesTheNetwork(client, places);
  await stopsWhenTold(scrip);
}

async function movesCredits(client: typeof Client, scrip: Client.Scrip): Promise<void> {
  const end_user_id = crypto.randomUUID();
  await scrip.add({ end_user_id, amount: 100 }, { idempotencyKey: 'payment 1' });
  await scrip.add({ end_user_id, amount: 100 }, { idempotencyKey: 'payment 1' });
  const poor = await errorOf(scrip.subtract({ end_user_id, amount: 130 }));
  hold(poor instanceof client.InsufficientFunds, 'a refusal is an error of its class');
  hold(
    poor.available === 100 && poor.shortfall === 30,
    'and carries what is available: two calls under one key are one',
  );
  const cycle = await scrip.startCycle({ end_user_id, amount: 1000 });
  const active = await errorOf(scrip.startCycle({ end_user_id, amount: 1 }));
  hold(
    active instanceof client.CycleAlreadyActive && active.cycle.created_at === cycle.created_at,
    'a cycle is active',
  );
  hold((await scrip.stopCycle({ end_user_id })).status === 'canceled', 'a cycle is stopped');
  const { active_balance } = await scrip.getActiveBalance({ end_user_id });
  hold(active_balance === 1100, 'a GET is sent without a body and answered');
}

async function goesThroughPages(scrip: Client.Scrip): Promise<void> {
  const end_user_id = crypto.randomUUID();
  for (const amount of [1, 2, 3, 4, 5]) await scrip.add({ end_user_id, amount });
  const amounts: number[] = [];
  for await (const { amount } of scrip.transactions({ end_user_id }, { pageSize: 2 })) amounts.push(amount);
  hold(amounts.join() === '5,4,3,2,1', 'all pages come, the latest first');
}

async function outlivesTheNetwork(
  client: typeof Client,
  { key, dropping, redirecting, silent }: Places,
): Promise<void> {
  const addition = { end_user_id: crypto.randomUUID(), amount: 7 };
  const to = (baseUrl: string, timeoutMs: number) => new client.Scrip({ baseUrl, apiKey: key, timeoutMs, retries: 1 });
  hold((await to(dropping, 5_000).add(addition)).amount === 7, 'a write whose connection drops is sent again');
  const elsewhere = await errorOf(to(redirecting, 5_000).add(addition));
  hold(elsewhere instanceof client.ScripError, 'a redirect is an error');
  const late = await errorOf(to(silent, 200).add(addition));
  hold(late instanceof client.TimedOut, 'an answer that stops half-way is too late');
  hold(typeof late.idempotencyKey === 'string', 'the error has the key to go on with');
  const nowhere = await errorOf(to('http://127.0.0.1:1', 5_000).add(addition));
  hold(nowhere instanceof client.ConnectionFailed, 'nobody there is a connection that failed');
  for (const error of [elsewhere, late, nowhere])
    hold(!`${error} ${(error as Error).stack} ${JSON.stringify(error)}`.includes(key), 'no error shows the API key');
}

async function stopsWhenTold(scrip: Client.Scrip): Promise<void> {
  const controller = new AbortController();
  controller.abort(new Error('the user has left'));
  const end_user_id = crypto.randomUUID();
  const left = await errorOf(scrip.add({ end_user_id, amount: 1 }, { signal: controller.signal }));
  hold(left instanceof Error && left.message === 'the user has left', 'a call ends with the reason that was given');
}

function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => new Error('no error'),
    (error: unknown) => error,
  );
}

function hold(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(`This does not hold: ${what}.`);
}
