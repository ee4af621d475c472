// A service that a developer might build on Redis: a script changes an end user's counter and appends the change to a
// stream. The service has no expiry, cycles or idempotency.

import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify from 'fastify';
import { Addition, AddRequest, Subtraction, SubtractRequest } from '../src/http/api/calls/credits.ts';
import { RedisConnection } from './redis-connection.ts';

const SUBTRACT = `
local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
if left < 0 then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[2], '*', 'user', KEYS[1], 'amount', '-' .. ARGV[1])
return 1`;
const ADD = `
redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[2], '*', 'user', KEYS[1], 'amount', ARGV[1])
return 1`;
const STREAM = 'transactions';

const redis = await RedisConnection.to(Number(process.env.REDIS_PORT));
const subtractSha = String(await redis.send('SCRIPT', 'LOAD', SUBTRACT));
const addSha = String(await redis.send('SCRIPT', 'LOAD', ADD));
const secretDigest = digestOf(`Bearer ${process.env.SECRET}`);
const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } });

app.addHook('onRequest', (request, reply, done) => {
  const isKnown = timingSafeEqual(digestOf(request.headers.authorization ?? ''), secretDigest);
  if (isKnown) done();
  else reply.code(401).send({ error: 'Unauthorized' });
});
app.post<{ Body: SubtractRequest }>(
  '/subtract',
  { schema: { body: SubtractRequest, response: { 200: Subtraction } } },
  async ({ body: { end_user_id, amount } }, reply) => {
    const isCovered = await redis.send('EVALSHA', subtractSha, 2, end_user_id, STREAM, amount);
    return isCovered === 1 ? { end_user_id, amount } : reply.code(402).send({ error: 'InsufficientFunds' });
  },
);
app.post<{ Body: AddRequest }>(
  '/add',
  { schema: { body: AddRequest, response: { 200: Addition } } },
  async ({ body: { end_user_id, amount } }) => {
    await redis.send('EVALSHA', addSha, 2, end_user_id, STREAM, amount);
    return { end_user_id, amount };
  },
);

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('SIGTERM', async () => {
  await app.close();
  redis.close();
});
