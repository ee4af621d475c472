// The two calls that read. Long lists and long balances are read and written in pieces, so that other requests do not
// wait for them.

import { Readable } from 'node:stream';
import type { FastifyInstance, preValidationHookHandler } from 'fastify';
import type { FairShare } from '../../batching/fair-share.ts';
import { activeBalance, cyclesAt } from '../../ledger/balance.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { type Admission, admission, endUserOf } from '../admission/admit.ts';
import { connectionOf } from '../admission/connections.ts';
import type { PageQueue } from '../admission/page-queue.ts';
import { sendError } from '../problem-reply.ts';
import { invalidFields, pointerTo } from '../problems.ts';
import { type Fields, listRequestOf, readInstants, readLimitOfQuery } from './list-request.ts';
import * as operations from './operations.ts';
import { balancePieces, sendPieces, sendStream } from './replies.ts';
import type * as schemas from './schemas.ts';
import { transactionList } from './transaction-list.ts';

export interface ReadRoutesOptions extends Admission {
  readonly ledger: LedgerStore;
  readonly pages: PageQueue;
  /** Bytes of large responses that their clients have not read yet. */
  readonly unsent: FairShare;
}

export function readRoutes(app: FastifyInstance, options: ReadRoutesOptions): void {
  const { ledger, pages, unsent } = options;
  const onRequest = admission(options, 'read');

  app.get<{ Querystring: schemas.EndUserQuery }>(
    '/get-active-balance',
    { onRequest, preValidation: mergeBodyIntoQuery, schema: operations.getActiveBalance },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      ledger
        .load(user)
        .then(({ now, state }) => {
          const current = cyclesAt(state, now);
          return balancePieces(user.endUser, current, activeBalance(current, now));
        })
        .then((pieces) => sendPieces(unsent, reply, pieces))
        .catch((error) => sendError(reply, error));
    },
  );

  app.get<{ Querystring: schemas.TransactionListQuery }>(
    '/get-all-user-transactions',
    { onRequest, preValidation: mergeListFields, schema: operations.getAllUserTransactions },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      const connection = connectionOf(request.raw.socket);
      transactionList(ledger, listRequestOf(user, request.query), (read) => pages.read(user.account, connection, read))
        .then((document) => {
          if (document instanceof Readable) sendStream(options, reply, document);
          else sendPieces(unsent, reply, document);
        })
        .catch((error) => sendError(reply, error));
    },
  );
}

const mergeBodyIntoQuery: preValidationHookHandler = (request, _reply, done) => {
  request.query = mergedFields(request.query as Fields, request.body);
  done();
};

const mergeListFields: preValidationHookHandler = (request, _reply, done) => {
  request.query = readInstants(mergedFields(readLimitOfQuery(request.query as Fields), request.body));
  done();
};

/**
 * Merges the fields of a GET request from its query string and its body. A field in both must have the same value.
 *
 * @throws InvalidRequest
 */
function mergedFields(query: Fields, body: unknown): Fields {
  const repeated = Object.keys(query).filter((name) => Array.isArray(query[name]));
  if (repeated.length > 0)
    throw invalidFields(
      repeated.map((name) => ({ path: pointerTo(name), message: 'occurs more than once in the query string' })),
    );
  if (body === undefined) return query;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalidFields([{ path: '', message: 'must be a JSON object' }]);
  const differing = Object.entries(body).filter(
    ([name, value]) => Object.hasOwn(query, name) && comparable(name, query[name]) !== comparable(name, value),
  );
  if (differing.length > 0)
    throw invalidFields(
      differing.map(([name]) => ({ path: pointerTo(name), message: 'differs between the body and the query string' })),
    );
  return { ...query, ...body };
}

/** UUIDs are compared without regard to case. */
function comparable(name: string, value: unknown): unknown {
  return name === 'end_user_id' && typeof value === 'string' ? value.toLowerCase() : value;
}
