// What a subtraction would cost without a ledger: the same framework, schema and answer, and nothing done. It is the
// denominator of the ratio that `against-echo.ts` prints.

import Fastify from 'fastify';
import { Subtraction, SubtractRequest } from '../src/http/schemas.ts';

const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } });
app.post<{ Body: SubtractRequest }>(
  '/subtract',
  { schema: { body: SubtractRequest, response: { 200: { ...Subtraction, $id: 'EchoedSubtraction' } } } },
  ({ body }, reply) => {
    reply.send({ end_user_id: body.end_user_id, amount: body.amount });
  },
);
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('SIGTERM', () => void app.close());
