// Submits the command of a form to group commit. The idempotency key of a form is stored with the change, so a form
// that is submitted twice takes effect only once.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Canceled, CommitResult } from '../../../batching/group-commit.ts';
import { formText, type PlainProblem, refusalDetail } from '../../../http/problems.ts';
import { AMOUNT_MAX, type Amount } from '../../../ledger/amount.ts';
import type { Idempotency, Refusal, WriteCommand } from '../../../ledger/command.ts';
import { renews } from '../../../ledger/cycle.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { StoreFault } from '../../../store/store-fault.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { numberText } from '../../figures.ts';
import { type FormState, WHOLE_FORM } from '../../pages/form-field.ts';
import { formField } from '../../request-reply.ts';

/** The length of a UUID. */
const IDEMPOTENCY_KEY_CHARACTERS_MAX = 36;

export type Submitted =
  /** The transaction ID is null if nothing was recorded. */
  | { readonly errors: null; readonly transactionId: TransactionId | null }
  | {
      readonly errors: FormState['errors'];
      /** Null after a fault. */
      readonly refused: Refusal['refused'] | null;
      /** The idempotency key with which the form is shown again: unchanged after a fault, new after a refusal. */
      readonly idempotencyKey: string;
    };

export async function submitChange(
  { options }: ConsoleContext,
  request: FastifyRequest,
  command: WriteCommand,
): Promise<Submitted> {
  const identified = { ...command, idempotency: idempotencyOf(request) };
  const result = await new Promise<CommitResult>((resolve) => options.commit.submit(identified, resolve));
  if ('code' in result)
    return { errors: faultErrors(result), refused: null, idempotencyKey: idempotencyKeyOf(request) || randomUUID() };
  if (result.refused === null) return { errors: null, transactionId: result.transactionId };
  const { refused } = result;
  return { errors: refusalErrors(result, command), refused, idempotencyKey: randomUUID() };
}

/** The prefix prevents collisions with the idempotency keys of API requests, which contain only ASCII characters. */
function idempotencyOf(request: FastifyRequest): Idempotency | null {
  const key = idempotencyKeyOf(request);
  return key === '' ? null : { key: `console · ${key}`, requestId: request.id };
}

function idempotencyKeyOf(request: FastifyRequest): string {
  return formField(request, 'idempotency_key').slice(0, IDEMPOTENCY_KEY_CHARACTERS_MAX);
}

const CHOOSE_START = 'A cycle is already active. Choose when the new plan starts.';
const NEVER_ENDS = 'The current period never ends, so the new plan must start now.';

function faultErrors({ code }: StoreFault | Canceled): FormState['errors'] {
  // The type of `code` includes `Canceled`, but commands from forms are never canceled.
  return { [WHOLE_FORM]: formText(code === 'Canceled' ? 'Overloaded' : code) };
}

const ROLLOVER_TOO_LARGE = `The amount and the unused credits together would exceed an end user's maximum balance of ${numberText(AMOUNT_MAX)} credits, which also includes the credits of other cycles. Nothing was changed.`;

export function refusalErrors(refusal: Refusal, command: WriteCommand): FormState['errors'] {
  switch (refusal.refused) {
    case 'BalanceTooLarge':
      if (isRolloverTooLarge(refusal, command)) return { rollover_max: ROLLOVER_TOO_LARGE };
      return { amount: refusalDetail(refusal, command.kind) };
    case 'InsufficientFunds':
    case 'RefundTooLarge':
      return { amount: refusalDetail(refusal, command.kind) };
    case 'CycleAlreadyActive':
      return { on_active: renews(refusal.cycle) ? CHOOSE_START : NEVER_ENDS };
    default:
      return { [WHOLE_FORM]: formText(refusal.refused satisfies PlainProblem) };
  }
}

/** Whether the amount might fit without the rollover. */
function isRolloverTooLarge({ available }: { readonly available: Amount }, command: WriteCommand): boolean {
  if (command.kind !== 'start-cycle') return false;
  const { amount, rolloverMax = 0 } = command;
  return rolloverMax > 0 && amount <= available + rolloverMax;
}
