// A service that a careful developer might write instead of using Scrip: credits on PostgreSQL, in lots that expire.
// The service never spends a credit twice, and responds only after its data is on stable storage. It has no cycles or
// renewals, no maximum balance, no accounts or revocable keys, no sortable IDs, no record of the lots that each
// transaction used, and no way to verify the data. It does not handle clocks that jump back, or a COMMIT without a
// reply.

import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';
import { Addition, AddRequest, Subtraction, SubtractRequest } from '../src/http/api/calls/credits.ts';

const CONNECTIONS = 16;

const SCHEMA = `
CREATE TABLE credit_lots (
  lot_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  end_user_id uuid NOT NULL,
  amount bigint NOT NULL CHECK (amount > 0),
  remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON credit_lots (end_user_id, expires_at);
CREATE TABLE transactions (
  transaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  end_user_id uuid NOT NULL,
  amount bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON transactions (end_user_id, transaction_id);`;

const LOTS = {
  name: 'lots',
  text: `SELECT lot_id, remaining, expires_at FROM credit_lots
    WHERE end_user_id = $1 AND expires_at > now() AND remaining > 0 ORDER BY created_at, lot_id FOR UPDATE`,
};
const DRAW = { name: 'draw', text: 'UPDATE credit_lots SET remaining = remaining - $2 WHERE lot_id = $1' };
const ADD_LOT = {
  name: 'add-lot',
  text: `INSERT INTO credit_lots (end_user_id, amount, remaining, expires_at)
    VALUES ($1, $2, $2, now() + $3 * interval '1 day') RETURNING expires_at`,
};
const RECORD = {
  name: 'record',
  text: 'INSERT INTO transactions (end_user_id, amount, expires_at) VALUES ($1, $2, $3)',
};

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS });
const secretDigest = digestOf(`Bearer ${process.env.SECRET}`);
const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } });

app.addHook('onRequest', async ({ headers }, reply) => {
  const isKnown = timingSafeEqual(digestOf(headers.authorization ?? ''), secretDigest);
  if (!isKnown) return reply.code(401).send({ error: 'Unauthorized' });
});
app.post<{ Body: AddRequest }>(
  '/add',
  { schema: { body: AddRequest, response: { 200: Addition } } },
  async ({ body: { end_user_id, amount, validity_days } }) => {
    await inTransaction(async (client) => {
      const lot = await client.query({ ...ADD_LOT, values: [end_user_id, amount, validity_days ?? 31] });
      await client.query({ ...RECORD, values: [end_user_id, amount, lot.rows[0].expires_at] });
    });
    return { end_user_id, amount };
  },
);
app.post<{ Body: SubtractRequest }>(
  '/subtract',
  { schema: { body: SubtractRequest, response: { 200: Subtraction } } },
  async ({ body: { end_user_id, amount } }, reply) => {
    const isCovered = await inTransaction((client) => subtract(client, end_user_id, amount));
    return isCovered ? { end_user_id, amount } : reply.code(402).send({ error: 'InsufficientFunds' });
  },
);

async function subtract(client: pg.PoolClient, endUser: string, amount: number): Promise<boolean> {
  const { rows: lots } = await client.query({ ...LOTS, values: [endUser] });
  const available = lots.reduce((sum, lot) => sum + Number(lot.remaining), 0);
  if (available < amount) return false;
  let wanted = amount;
  let expiresAt = new Date(0);
  for (const lot of lots) {
    if (wanted === 0) break;
    const drawn = Math.min(wanted, Number(lot.remaining));
    await client.query({ ...DRAW, values: [lot.lot_id, drawn] });
    wanted -= drawn;
    if (lot.expires_at > expiresAt) expiresAt = lot.expires_at;
  }
  await client.query({ ...RECORD, values: [endUser, -amount, expiresAt] });
  return true;
}

async function inTransaction<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

await pool.query(SCHEMA);
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('SIGTERM', async () => {
  await app.close();
  await pool.end();
});
