// A replacement for `next-event.ts` in which every end user counts as settled, so reads never wait for running writes.

export * from '../../src/ledger/next-event.ts';

export function isSettled(): boolean {
  return true;
}
