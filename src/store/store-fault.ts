// Why a store failed. A fault is thrown; a refusal of the ledger is a value (`ledger/command.ts`).

/**
 * `StoreUnavailable`: nothing happened. `OutcomeUnknown`: the commit itself failed, so it may or may not have happened.
 * `Internal`: an invariant is violated; the store has stopped writing and will not start again by itself.
 */
export type FaultCode = 'StoreUnavailable' | 'OutcomeUnknown' | 'Internal';

export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly code: FaultCode;

  constructor(code: FaultCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** Why a store cannot be opened, as a sentence that says what to do. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

/** A cursor that no page has given out, or that belongs to another list. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor';

  constructor() {
    super('No page of this list ends there.');
  }
}
