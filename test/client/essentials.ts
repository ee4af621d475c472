// The checks that the client must pass in Node, Deno, Bun and workers. The checks use only the runtime features that
// the client uses.

import type * as Client from '../../client/src/scrip.ts';

export interface Servers {
  readonly url: string;
  readonly key: string;
  /** The URL of a server that applies the first write and then drops the connection. */
  readonly dropping: string;
  readonly redirecting: string;
  /** The URL of a server that sends response headers, but never a body. */
  readonly silent: string;
}

export async function testEssentials(client: typeof Client, servers: Servers): Promise<void> {
  const scrip = new client.Scrip({ baseUrl: servers.url, apiKey: servers.key });
  await movesCredits(client, scrip);
  await holdsCredits(scrip);
  await iteratesOverPages(scrip);
  await survivesNetworkFailures(client, servers);
  await stopsOnAbort(scrip);
  await verifiesWebhooks(client);
}

async function movesCredits(client: typeof Client, scrip: Client.Scrip): Promise<void> {
  const end_user_id = crypto.randomUUID();
  await scrip.add({ end_user_id, amount: 100 }, { idempotencyKey: 'payment 1' });
  await scrip.add({ end_user_id, amount: 100 }, { idempotencyKey: 'payment 1' });
  const poor = await errorOf(scrip.subtract({ end_user_id, amount: 130 }));
  check(poor instanceof client.InsufficientFunds, 'a refusal throws its error class');
  check(poor.available === 100 && poor.shortfall === 30, 'two calls with one idempotency key add the credits once');
  const cycle = await scrip.startCycle({ end_user_id, amount: 1000 });
  const active = await errorOf(scrip.startCycle({ end_user_id, amount: 1 }));
  check(
    active instanceof client.CycleAlreadyActive && active.cycle.created_at === cycle.created_at,
    'a second cycle throws CycleAlreadyActive, which contains the first cycle',
  );
  check((await scrip.stopCycle({ end_user_id })).status === 'canceled', 'a cycle can be stopped');
  const { active_balance } = await scrip.getActiveBalance({ end_user_id });
  check(active_balance === 1100, 'the balance can be read');
}

async function holdsCredits(scrip: Client.Scrip): Promise<void> {
  const end_user_id = crypto.randomUUID();
  await scrip.add({ end_user_id, amount: 100 });
  const captured = await scrip.withHold(end_user_id, 50, async () => 32);
  check(captured.amount === 32 && captured.returned === 18, 'withHold captures the cost that the callback returns');
  check(typeof captured.transactionId === 'string', 'a write returns the ID of its transaction');
  const failure = new Error('the work failed');
  const failed = await errorOf(scrip.withHold(end_user_id, 50, () => Promise.reject(failure)));
  check(failed === failure, 'withHold throws the error from the callback');
  const { active_balance, held } = await scrip.getActiveBalance({ end_user_id, at: new Date(Date.now() + 1_000) });
  check(active_balance === 68 && held === undefined, 'withHold releases the hold if the callback throws');
}

async function iteratesOverPages(scrip: Client.Scrip): Promise<void> {
  const end_user_id = crypto.randomUUID();
  for (const amount of [1, 2, 3, 4, 5]) await scrip.add({ end_user_id, amount });
  const amounts: number[] = [];
  for await (const { amount } of scrip.transactions({ end_user_id }, { pageSize: 2 })) amounts.push(amount);
  check(amounts.join() === '5,4,3,2,1', 'the iterator returns all pages, newest first');
}

async function survivesNetworkFailures(
  client: typeof Client,
  { key, dropping, redirecting, silent }: Servers,
): Promise<void> {
  const addition = { end_user_id: crypto.randomUUID(), amount: 7 };
  const to = (baseUrl: string, timeoutMs: number) => new client.Scrip({ baseUrl, apiKey: key, timeoutMs, retries: 1 });
  check((await to(dropping, 5_000).add(addition)).amount === 7, 'a write whose connection drops is retried');
  const elsewhere = await errorOf(to(redirecting, 5_000).add(addition));
  check(elsewhere instanceof client.ScripError, 'a redirect is an error');
  const late = await errorOf(to(silent, 200).add(addition));
  check(late instanceof client.TimedOut, 'an incomplete response times out');
  check(typeof late.idempotencyKey === 'string', 'the error has the idempotency key');
  const unreachable = await errorOf(to('http://127.0.0.1:1', 5_000).add(addition));
  check(unreachable instanceof client.ConnectionFailed, 'an unreachable address throws ConnectionFailed');
  for (const error of [elsewhere, late, unreachable])
    check(
      !`${error} ${(error as Error).stack} ${JSON.stringify(error)}`.includes(key),
      'no error contains the API key',
    );
}

async function stopsOnAbort(scrip: Client.Scrip): Promise<void> {
  const controller = new AbortController();
  controller.abort(new Error('the user has left'));
  const end_user_id = crypto.randomUUID();
  const left = await errorOf(scrip.add({ end_user_id, amount: 1 }, { signal: controller.signal }));
  check(
    left instanceof Error && left.message === 'the user has left',
    'an aborted call rejects with the abort reason of its signal',
  );
}

async function verifiesWebhooks({ verifyWebhook, WebhookVerificationError }: typeof Client): Promise<void> {
  const secret = `whsec_${btoa('a secret of twenty-four bytes')}`;
  const body = new TextEncoder().encode('{"id":"evt_1","type":"webhook.test","data":{"endpoint_id":1}}');
  const timestamp = Math.floor(Date.now() / 1_000);
  const signed = new TextEncoder().encode(`evt_1.${timestamp}.${new TextDecoder().decode(body)}`);
  const raw = new TextEncoder().encode('a secret of twenty-four bytes');
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed));
  const headers = new Headers({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  });
  check((await verifyWebhook(headers, body, secret)).type === 'webhook.test', 'a signed webhook is verified');
  const refused = await errorOf(verifyWebhook(headers, '{}', secret));
  check(refused instanceof WebhookVerificationError, 'a webhook with a different body is refused');
}

function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => new Error('no error'),
    (error: unknown) => error,
  );
}

function check(condition: boolean, description: string): asserts condition {
  if (!condition) throw new Error(`Failed: ${description}`);
}
