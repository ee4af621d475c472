// Records a trace span for each HTTP request.

import type { FastifyInstance } from 'fastify';
import type { RequestTrace, Tracer } from '../../tracing/tracer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    trace: RequestTrace | null;
  }
}

export function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  app.decorateRequest('trace', null);
  app.addHook('onRequest', (request, _reply, done) => {
    request.trace = tracer.beginRequest(request.headers.traceparent);
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { trace, method, id: requestId } = request;
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    if (trace !== null) tracer.endRequest(trace, { method, route, status: reply.statusCode, requestId });
    done();
  });
}
