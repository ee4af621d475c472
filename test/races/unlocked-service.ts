// The control for the double-spending test: a service that stores credits in PostgreSQL the naive way. It reads the
// balance, checks that it is enough, and writes the rest, without a lock, so credits are spent twice.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import pg from 'pg';

const CONNECTIONS = 8;

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS });

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks = await request.toArray();
  const { end_user_id, amount } = JSON.parse(Buffer.concat(chunks).toString());
  if (request.url === '/add') {
    await pool.query('INSERT INTO balances VALUES ($1, $2)', [end_user_id, amount]);
    response.end('{}');
    return;
  }
  const { rows } = await pool.query('SELECT credits FROM balances WHERE end_user_id = $1', [end_user_id]);
  const left = Number(rows[0].credits) - amount;
  if (left >= 0) await pool.query('UPDATE balances SET credits = $2 WHERE end_user_id = $1', [end_user_id, left]);
  response.writeHead(left >= 0 ? 200 : 402).end('{}');
}

await pool.query('CREATE TABLE IF NOT EXISTS balances (end_user_id uuid PRIMARY KEY, credits bigint NOT NULL)');
const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});
