// The control for the double-spending test: a service that stores credits in PostgreSQL without locks, so that
// concurrent requests can spend or refund credits twice.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import pg from 'pg';

const CONNECTIONS = 8;

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS });

interface Asked {
  readonly end_user_id: string;
  readonly amount?: number;
  readonly hold_id?: string;
  readonly transaction_id?: string;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks = await request.toArray();
  if (request.method === 'GET') {
    const user = new URL(`http://localhost${request.url}`).searchParams.get('end_user_id');
    return void response.end(JSON.stringify({ active_balance: await creditsOf(String(user)) }));
  }
  const asked: Asked = JSON.parse(Buffer.concat(chunks).toString());
  switch (request.url) {
    case '/add':
      await pool.query('INSERT INTO balances VALUES ($1, $2)', [asked.end_user_id, asked.amount]);
      return void response.end('{}');
    case '/subtract':
    case '/hold':
      return take(asked, response);
    case '/refund':
      return giveBack(asked, asked.transaction_id, asked.amount ?? null, response);
    case '/capture':
      return giveBack({ ...asked, end_user_id: NO_END_USER }, asked.hold_id, null, response, 404);
    default:
      return giveBack(asked, asked.hold_id, null, response, 404);
  }
}

/** A capture moves the held credits to this end user. The end user does not exist, so the credits count as spent. */
const NO_END_USER = '00000000-0000-4000-8000-000000000000';

async function creditsOf(user: string): Promise<number> {
  const { rows } = await pool.query('SELECT credits FROM balances WHERE end_user_id = $1', [user]);
  return Number(rows[0]?.credits ?? 0);
}

function setCredits(user: string, credits: number): Promise<unknown> {
  return pool.query('UPDATE balances SET credits = $2 WHERE end_user_id = $1', [user, credits]);
}

async function take({ end_user_id, amount = 0 }: Asked, response: ServerResponse): Promise<void> {
  const left = (await creditsOf(end_user_id)) - amount;
  if (left < 0) return void response.writeHead(402).end('{}');
  const id = crypto.randomUUID();
  await setCredits(end_user_id, left);
  await pool.query('INSERT INTO taken VALUES ($1, $2)', [id, amount]);
  response.writeHead(200, { 'transaction-id': id }).end(JSON.stringify({ hold_id: id }));
}

async function giveBack(
  { end_user_id }: Asked,
  id: string | undefined,
  amount: number | null,
  response: ServerResponse,
  refused = 409,
): Promise<void> {
  const { rows } = await pool.query('SELECT credits FROM taken WHERE id = $1', [id]);
  const there = Number(rows[0].credits);
  const wanted = amount ?? there;
  if (there === 0 || wanted > there) return void response.writeHead(refused).end('{}');
  await pool.query('UPDATE taken SET credits = $2 WHERE id = $1', [id, there - wanted]);
  await setCredits(end_user_id, (await creditsOf(end_user_id)) + wanted);
  response.writeHead(200).end('{}');
}

await pool.query('CREATE TABLE IF NOT EXISTS balances (end_user_id uuid PRIMARY KEY, credits bigint NOT NULL)');
await pool.query('CREATE TABLE IF NOT EXISTS taken (id uuid PRIMARY KEY, credits bigint NOT NULL)');
const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});
