// Controls: proxies in front of Scrip, each with one fault that the fuzzer must catch:
//
//   coerces         converts text to numbers and removes unknown fields, as Fastify does by default
//   changes         refuses a subtraction after Scrip has executed it
//   falls silent    does not respond to invalid JSON
//   fails           responds to invalid JSON with a 500

import type { IncomingMessage } from 'node:http';
import Fastify, { type FastifyReply } from 'fastify';
import { AddRequest, RefundRequest, SubtractRequest } from '../../src/http/api/calls/credits.ts';
import { PreviewChangeRequest, StartCycleRequest, StopCycleRequest } from '../../src/http/api/calls/cycles.ts';
import { CaptureRequest, HoldRequest, ReleaseRequest } from '../../src/http/api/calls/holds.ts';
import type { Scrip } from '../http/running-service.ts';

export type Fault = 'coerces' | 'changes' | 'falls silent' | 'fails';

const BODIES = {
  '/add': AddRequest,
  '/subtract': SubtractRequest,
  '/refund': RefundRequest,
  '/start-cycle': StartCycleRequest,
  '/stop-cycle': StopCycleRequest,
  '/hold': HoldRequest,
  '/capture': CaptureRequest,
  '/release': ReleaseRequest,
  '/preview-change': PreviewChangeRequest,
};

const TEXT = Symbol('the body as received');
type Raw = IncomingMessage & { [TEXT]?: string };

export async function loosenedFront(scrip: Scrip, fault: Fault): Promise<{ port: number; close(): Promise<void> }> {
  const app = Fastify({ forceCloseConnections: true, ajv: { customOptions: { strict: false } } });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^/, { parseAs: 'string' }, (request, text, done) => {
    (request.raw as Raw)[TEXT] = String(text);
    try {
      done(null, JSON.parse(String(text)));
    } catch {
      done(null, undefined);
    }
  });
  for (const [path, schema] of Object.entries(BODIES)) {
    // Fastify's validation changes the body in place. With `attachValidation`, the proxy forwards even an invalid body.
    const options = { attachValidation: true, ...(fault === 'coerces' ? { schema: { body: schema } } : {}) };
    app.post(path, options, async (request, reply) => {
      const text = (request.raw as Raw)[TEXT] ?? '';
      if (request.body === undefined && fault === 'falls silent') return new Promise(() => {});
      if (request.body === undefined && fault === 'fails') return reply.code(500).send({});
      const loosened = fault === 'coerces' && request.body !== undefined ? JSON.stringify(request.body) : text;
      const { authorization = '', 'content-type': type = '' } = request.headers;
      const headers = { authorization, 'content-type': type };
      const response = await fetch(scrip.url + path, { method: 'POST', headers, body: loosened });
      const answer = await response.text();
      if (fault === 'changes' && response.status === 200 && path === '/subtract') return refused(reply);
      return reply
        .code(response.status)
        .header('content-type', response.headers.get('content-type') ?? '')
        .header('transaction-id', response.headers.get('transaction-id') ?? '')
        .send(answer);
    });
  }
  app.setNotFoundHandler(async ({ url, raw: { method = 'GET' }, headers: { authorization = '' } }, reply) => {
    if (method !== 'GET') return refused(reply);
    const response = await fetch(scrip.url + url, { headers: { authorization } });
    return reply
      .code(response.status)
      .header('content-type', response.headers.get('content-type') ?? '')
      .send(await response.text());
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return { port: (app.server.address() as { port: number }).port, close: () => app.close() };
}

function refused(reply: FastifyReply): FastifyReply {
  const problem = { type: '/problems/InvalidField', status: 422, error: 'InvalidField' };
  const document = { ...problem, title: 'Refused', detail: 'The write was executed anyway.', request_id: '1' };
  return reply
    .code(422)
    .header('content-type', 'application/problem+json')
    .send(Buffer.from(JSON.stringify(document)));
}
