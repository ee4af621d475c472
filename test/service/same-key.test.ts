// Tests that each idempotency key has one effect and one response, even if a server is killed during thousands of
// requests. The control sends requests without idempotency keys.

import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { scrip as command, type Server, serve } from '../cli/scrip-command.ts';
import { control, effort } from '../effort.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';

const KEYS = 100;
const REQUESTS = Number(process.env.SAME_KEY_REQUESTS ?? effort(500, 3_000));
const AT_ONCE = 64;
const END_USERS = 7;
/** Requests need a timeout, because a killed server may never respond. */
const ANSWER_MS = 5_000;
const TEST_MS = 120_000;

let postgres: PostgresServer;
before(async () => {
  postgres = await PostgresServer.start();
});
after(() => postgres.remove());

interface Service {
  readonly secret: string;
  readonly users: readonly string[];
  servers: Server[];
  start(): Promise<Server>;
}

async function serviceOn(t: TestContext, database: string, count: number): Promise<Service> {
  const environment = { DATABASE_URL: database };
  const start = () => serve(t, '', [], environment);
  const { stdout } = await command(['key', 'create', '--account', 'Acme'], environment);
  const secret = stdout.trim().split('\n').at(-1) as string;
  const servers = [await start()];
  while (servers.length < count) servers.push(await start());
  const users = Array.from({ length: END_USERS }, () => crypto.randomUUID());
  return { secret, users, servers, start };
}

interface Sent {
  readonly index: number;
  /** The response is null if there was none or if the status was 500 or more. */
  readonly answer: string | null;
}

async function send({ servers, secret, users }: Service, index: number, keyed: boolean): Promise<Sent> {
  const number = index % KEYS;
  const headers: Record<string, string> = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  if (keyed) headers['idempotency-key'] = `order-${number}`;
  // Every third request exceeds the balance, so the test also covers stored refusals.
  const path = number % 3 === 0 ? '/subtract' : '/add';
  const amount = number % 3 === 0 ? 1_000_000 : number + 1;
  const body = JSON.stringify({ end_user_id: users[number % END_USERS], amount });
  const { url } = servers[index % servers.length] as Server;
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const response = await fetch(url + path, { method: 'POST', headers, body, signal });
    const text = await response.text();
    return { index, answer: response.status < 500 ? `${response.status} ${text}` : null };
  } catch {
    return { index, answer: null };
  }
}

async function sendAll(service: Service): Promise<Sent[]> {
  const sent: Sent[] = [];
  let next = 0;
  const client = async () => {
    for (let index = next++; index < REQUESTS; index = next++) {
      sent.push(await send(service, index, true));
      if (index === REQUESTS / 2) await replaceOne(service);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  return sent;
}

async function replaceOne(service: Service): Promise<void> {
  const [killed] = service.servers as [Server];
  killed.kill('SIGKILL');
  await killed.ended;
  service.servers = [...service.servers.slice(1), await service.start()];
}

async function transactionsOf({ servers, secret, users }: Service): Promise<number[]> {
  const lists = users.map(async (user) => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`${servers[0]?.url}/get-all-user-transactions?end_user_id=${user}`, { headers });
    const { transactions } = (await response.json()) as { transactions: { amount: number }[] };
    return transactions.map(({ amount }) => amount);
  });
  return (await Promise.all(lists)).flat();
}

const additions = Array.from({ length: KEYS }, (_, number) => number).filter((number) => number % 3 !== 0);

async function assertOncePerKey(service: Service): Promise<void> {
  const sent = await sendAll(service);
  const unanswered = sent.filter(({ answer }) => answer === null);
  assert(unanswered.length < REQUESTS / 2, `${unanswered.length} requests got no response`);
  const responses = new Map<number, Set<string>>();
  const note = ({ index, answer }: Sent) => {
    if (answer === null) return;
    const known = responses.get(index % KEYS) ?? new Set();
    responses.set(index % KEYS, known.add(answer));
  };
  sent.forEach(note);
  for (const { index } of unanswered) note(await send(service, index, true));
  assert.deepEqual(
    [...responses.values()].map(({ size }) => size),
    Array(KEYS).fill(1),
    'one response for each key',
  );
  const amounts = (await transactionsOf(service)).toSorted((a, b) => a - b);
  assert.deepEqual(
    amounts,
    additions.map((number) => number + 1),
    'one effect for each key',
  );
}

test('on SQLite, each idempotency key has one effect and one response, even if the server is killed', {
  timeout: TEST_MS,
}, async (t) => {
  await assertOncePerKey(await serviceOn(t, `file:${temporaryFile()}`, 1));
});

test('on PostgreSQL, each idempotency key has one effect and one response, even if one of two servers is killed', {
  timeout: TEST_MS,
}, async (t) => {
  await assertOncePerKey(await serviceOn(t, await postgres.createDatabase(), 2));
});

control(
  'control: without idempotency keys, an addition that is sent twice takes effect twice',
  {
    timeout: TEST_MS,
  },
  async (t) => {
    const service = await serviceOn(t, `file:${temporaryFile()}`, 1);
    await Promise.all(Array.from({ length: 2 * KEYS }, (_, index) => send(service, index, false)));
    assert.equal((await transactionsOf(service)).length, 2 * additions.length);
  },
);
