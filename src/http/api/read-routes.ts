// The calls that read balances and transactions. Large documents are read and written in pieces, so that other requests
// do not wait for them.

import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { activeBalance, cyclesAt } from '../../ledger/balance.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { heldAt } from '../../ledger/hold.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { EndUserState } from '../../ledger/state.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { admission, endUserOf } from '../admission/admit.ts';
import { connectionOf } from '../admission/connections.ts';
import { sendError } from '../problem-reply.ts';
import { balanceHistory } from './balance-history.ts';
import type { CallOptions } from './call-options.ts';
import * as balances from './calls/balances.ts';
import * as transactions from './calls/transactions.ts';
import { listRequestOf } from './list-request.ts';
import { fieldsReader } from './query-fields.ts';
import { balancePieces, sendPieces, sendStream } from './replies.ts';
import { type InTurn, transactionList } from './transaction-list.ts';

export function readRoutes(app: FastifyInstance, options: CallOptions): void {
  const { ledger, pages, unsent } = options;
  const onRequest = admission(options, 'read');
  const inTurnOf = ({ account }: EndUserKey, request: FastifyRequest): InTurn => {
    const connection = connectionOf(request.raw.socket);
    return (read) => pages.read(account, connection, read);
  };

  app.get<{ Querystring: balances.BalanceQuery }>(
    '/get-active-balance',
    { onRequest, preValidation: readBalanceFields, schema: balances.getActiveBalance },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      const { at } = request.query;
      const loaded =
        at === undefined
          ? ledger.load(user).then(({ now, state }) => piecesAt(user, state, now))
          : stateAt(ledger, user, Date.parse(at), inTurnOf(user, request));
      loaded.then((pieces) => sendPieces(unsent, reply, pieces)).catch((error) => sendError(reply, error));
    },
  );

  app.get<{ Querystring: balances.BalanceHistoryQuery }>(
    '/get-balance-history',
    { onRequest, preValidation: readHistoryFields, schema: balances.getBalanceHistory },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      balanceHistory(ledger, user, request.query, inTurnOf(user, request))
        .then((pieces) => sendPieces(unsent, reply, pieces))
        .catch((error) => sendError(reply, error));
    },
  );

  app.get<{ Querystring: transactions.TransactionListQuery }>(
    '/get-all-user-transactions',
    { onRequest, preValidation: readListFields, schema: transactions.getAllUserTransactions },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      transactionList(ledger, listRequestOf(user, request.query), inTurnOf(user, request))
        .then((document) => {
          if (document instanceof Readable) sendStream(options, reply, document);
          else sendPieces(unsent, reply, document);
        })
        .catch((error) => sendError(reply, error));
    },
  );
}

const readBalanceFields = fieldsReader({ instants: ['at'], rounding: 'down' });
const readHistoryFields = fieldsReader({ instants: ['from', 'to'], rounding: 'down', isRangeStrict: true });
const readListFields = fieldsReader({ integers: ['limit'], booleans: ['details'], instants: ['from', 'to'] });

async function stateAt(ledger: LedgerStore, user: EndUserKey, at: Instant, inTurn: InTurn) {
  const { states } = await inTurn(() => ledger.statesAt(user, [at]));
  return piecesAt(user, states[0] as EndUserState, at);
}

function piecesAt({ endUser }: EndUserKey, state: EndUserState, at: Instant) {
  const current = cyclesAt(state, at);
  return balancePieces(endUser, current, { balance: activeBalance(current, at), held: heldAt(state.holds, at) });
}
