// Checks whether some sequential order of concurrent operations explains all outputs. The algorithm is Wing and Gong's
// search with Lowe's cache. An operation with an unknown outcome may take effect at any time after its call, or never.
//
// https://www.cs.ox.ac.uk/people/gavin.lowe/LinearizabiltyTesting/paper.pdf

export interface Operation<Input, Output> {
  readonly input: Input;
  /** Null if the outcome is unknown. */
  readonly output: Output | null;
  readonly calledAt: number;
  readonly returnedAt: number;
}

export interface Specification<State, Input, Output> {
  readonly initial: State;
  /** @returns null if the operation cannot have this output in `state` */
  step(state: State, input: Input, output: Output | null): State | null;
  /** Returns the same text for two states if and only if they are equal. */
  nameOf(state: State): string;
}

export type Verdict<Input, Output> =
  | { readonly isLinearizable: true }
  | { readonly isLinearizable: false; readonly stuckAt: Operation<Input, Output> };

interface End<Input, Output> {
  readonly operation: Operation<Input, Output>;
  readonly bit: bigint;
  /** The return of a call, or null if the outcome of the call is unknown. Always null for a return. */
  readonly matching: End<Input, Output> | null;
  readonly isCall: boolean;
  before: End<Input, Output> | null;
  after: End<Input, Output> | null;
}

const STEPS_MAX = 5_000_000;

/** Thrown after `STEPS_MAX` steps, because the search for an order can take exponential time. */
export class NoVerdict extends Error {}

/** @throws NoVerdict */
export function checkLinearizable<State, Input, Output>(
  { initial, step, nameOf }: Specification<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
): Verdict<Input, Output> {
  const head = listOf(history);
  let unfinished = history.filter(({ output }) => output !== null).length;
  const taken: { readonly call: End<Input, Output>; readonly stateBefore: State }[] = [];
  const seen = new Set<string>();
  let state = initial;
  let done = 0n;
  let stuckAt: Operation<Input, Output> | null = null;
  let end = head.after;
  // Try operations with an unknown outcome last, because most of them do not affect other operations.
  let isUnknownsTurn = false;
  for (let steps = 0; unfinished > 0; steps++) {
    if (steps > STEPS_MAX) throw new NoVerdict(`no verdict after ${STEPS_MAX} steps over ${history.length} operations`);
    if (end?.isCall) {
      const { input, output } = end.operation;
      const next = isUnknownsTurn === (output === null) ? step(state, input, output) : null;
      const isIdle = next !== null && output === null && nameOf(next) === nameOf(state);
      if (next === null || isIdle || !isNew(seen, `${(done | end.bit).toString(36)} ${nameOf(next)}`)) {
        end = end.after;
        continue;
      }
      taken.push({ call: end, stateBefore: state });
      state = next;
      done |= end.bit;
      if (output !== null) unfinished -= 1;
      lift(end);
      end = head.after;
      isUnknownsTurn = false;
    } else if (!isUnknownsTurn) {
      end = head.after;
      isUnknownsTurn = true;
    } else {
      // No operation can come next, so an earlier choice was wrong.
      if (end !== null && (stuckAt === null || end.operation.returnedAt > stuckAt.returnedAt)) stuckAt = end.operation;
      const latest = taken.pop();
      if (latest === undefined) return { isLinearizable: false, stuckAt: stuckAt as Operation<Input, Output> };
      state = latest.stateBefore;
      done &= ~latest.call.bit;
      isUnknownsTurn = latest.call.matching === null;
      if (!isUnknownsTurn) unfinished += 1;
      putBack(latest.call);
      end = latest.call.after;
    }
  }
  return { isLinearizable: true };
}

function isNew(seen: Set<string>, name: string): boolean {
  if (seen.has(name)) return false;
  seen.add(name);
  return true;
}

function listOf<Input, Output>(history: readonly Operation<Input, Output>[]): End<Input, Output> {
  const ends: { readonly at: number; readonly end: End<Input, Output> }[] = [];
  history.forEach((operation, index) => {
    const bit = 1n << BigInt(index);
    const links = { before: null, after: null };
    let matching: End<Input, Output> | null = null;
    if (operation.output !== null) {
      matching = { operation, bit, matching: null, isCall: false, ...links };
      ends.push({ at: operation.returnedAt, end: matching });
    }
    ends.push({ at: operation.calledAt, end: { operation, bit, matching, isCall: true, ...links } });
  });
  // If a call and a return have the same time, the call comes first: the operations then count as concurrent, which
  // avoids false alarms.
  ends.sort((a, b) => a.at - b.at || Number(b.end.isCall) - Number(a.end.isCall));
  const none = { input: null, output: null, calledAt: 0, returnedAt: 0 } as unknown as Operation<Input, Output>;
  const head: End<Input, Output> = {
    operation: none,
    bit: 0n,
    matching: null,
    isCall: false,
    before: null,
    after: null,
  };
  let last = head;
  for (const { end } of ends) {
    last.after = end;
    end.before = last;
    last = end;
  }
  return head;
}

function lift<Input, Output>(call: End<Input, Output>): void {
  for (const end of [call, call.matching]) {
    if (end === null) continue;
    if (end.before) end.before.after = end.after;
    if (end.after) end.after.before = end.before;
  }
}

function putBack<Input, Output>(call: End<Input, Output>): void {
  for (const end of [call.matching, call]) {
    if (end === null) continue;
    if (end.before) end.before.after = end;
    if (end.after) end.after.before = end;
  }
}
