// Valid and invalid bodies of writes in a simulation.

import type { ModelCommand, ModelValidity } from '../model/model-types.ts';

export function bodyOf(command: ModelCommand, inCapitals: boolean): string {
  const shown = (id: string) => (inCapitals ? id.toUpperCase() : id);
  const { note = null } = command;
  const { end, ...fields } = {
    end: note === null ? '}' : `,"note":${JSON.stringify(note)}}`,
    ...fieldsOf(command, shown),
  };
  // Building the text here is much faster than `JSON.stringify`.
  let text = `{"end_user_id":"${shown(command.endUser)}"`;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) text += `,"${name}":${typeof value === 'string' ? `"${value}"` : value}`;
  }
  return text + end;
}

function fieldsOf(
  command: ModelCommand,
  shown: (id: string) => string,
): Record<string, string | number | null | undefined> {
  switch (command.kind) {
    case 'add':
      return { amount: command.amount, ...validityOf(command) };
    case 'subtract':
      return { amount: command.amount };
    case 'start-cycle': {
      const { amount, rolloverMax, onActive } = command;
      const rollover_max = rolloverMax > 0 || isOdd(amount) ? rolloverMax : undefined;
      const on_active = onActive === 'refuse' ? undefined : onActive;
      return { amount, ...validityOf(command), rollover_max, on_active };
    }
    case 'stop-cycle':
      return {};
    case 'hold':
      return { amount: command.amount, expires_in_seconds: command.expiresInSeconds };
    case 'capture':
      return { hold_id: shown(command.holdId), amount: command.amount ?? undefined };
    case 'release':
      return { hold_id: shown(command.holdId) };
    case 'refund': {
      const { transactionId, amount, validityDays } = command;
      return { transaction_id: shown(transactionId), amount: amount ?? undefined, validity_days: validityDays };
    }
  }
}

function validityOf({ amount, validityDays, validityMonths }: ModelValidity & { readonly amount: number }) {
  const absent = isOdd(amount) ? null : undefined;
  return { validity_days: validityDays ?? absent, validity_months: validityMonths ?? absent };
}

function isOdd(amount: number): boolean {
  return amount % 2 === 1;
}

export const INVALID_BODIES: readonly ((endUser: string) => string)[] = [
  (end_user_id) => JSON.stringify({ end_user_id, amount: 0 }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: '5' }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: 1.5 }),
  (end_user_id) => `{"end_user_id":"${end_user_id}","amount":9007199254740993}`,
  (end_user_id) => `{"end_user_id":"${end_user_id}","amount":1,"amount":1}`,
  (end_user_id) => JSON.stringify({ end_user_id, amount: 5, validity_day: 3 }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: 5, validity_days: 3, validity_months: 3 }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: 5, validity_months: 121 }),
  (end_user_id) => JSON.stringify({ end_user_id, amount: 5, rollover_max: -1 }),
  () => JSON.stringify({ amount: 5 }),
];

/** Two requests with the same idempotency key count as the same request if their texts are equal. */
export function requestText(command: ModelCommand): string {
  const { kind, note = null } = command;
  const onActive = kind === 'start-cycle' ? command.onActive : '';
  return `${kind} ${onActive} ${JSON.stringify(fieldsOf(command, (id) => id))} ${note ?? 'without a note'}`;
}
