// A replacement for `next-event.ts` in which no event is ever due.

export * from '../../src/ledger/next-event.ts';

export function isSettled(): boolean {
  return true;
}
