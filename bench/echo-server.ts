// Responds as Scrip does, with the same framework and schemas, but stores nothing. The "vs. echo" column in the
// benchmark tables compares each system with this server.

import Fastify from 'fastify';
import { Balance, CycleEntry } from '../src/http/api/calls/balances.ts';
import { Addition, AddRequest, Subtraction, SubtractRequest } from '../src/http/api/calls/credits.ts';
import { NextCycle } from '../src/http/api/calls/cycles.ts';
import { EndUserQuery } from '../src/http/api/calls/fields.ts';

const CYCLE = {
  cycle_start: '2026-11-20T08:00:00.123Z',
  cycle_end: '2026-12-21T08:00:00.123Z',
  amount: 999_999_999_999,
  starting_amount: 1_000_000_000_000,
  status: 'active',
  cycle_type: 'one-time',
};

const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } });
app.addSchema(NextCycle);
app.addSchema(CycleEntry);
app.post<{ Body: SubtractRequest }>(
  '/subtract',
  { schema: { body: SubtractRequest, response: { 200: { ...Subtraction, $id: 'EchoedSubtraction' } } } },
  async ({ body }) => ({ end_user_id: body.end_user_id, amount: body.amount }),
);
app.post<{ Body: AddRequest }>(
  '/add',
  { schema: { body: AddRequest, response: { 200: { ...Addition, $id: 'EchoedAddition' } } } },
  async ({ body }) => ({ end_user_id: body.end_user_id, amount: body.amount }),
);
app.get<{ Querystring: EndUserQuery }>(
  '/get-active-balance',
  { schema: { querystring: EndUserQuery, response: { 200: { ...Balance, $id: 'EchoedBalance' } } } },
  async ({ query }) => ({
    end_user_id: query.end_user_id,
    active_balance_by_cycle: [CYCLE],
    active_balance: CYCLE.amount,
  }),
);
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('SIGTERM', () => void app.close());
