// The errors that a store throws. A refusal is not an error: it is returned (`ledger/command.ts`).

/**
 * `StoreUnavailable`: nothing was changed. `OutcomeUnknown`: it is unknown whether the write was stored, for example
 * because COMMIT failed. `Internal`: an invariant is violated; the store has stopped writing and does not resume by
 * itself.
 */
export type FaultCode = 'StoreUnavailable' | 'OutcomeUnknown' | 'Internal';

export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly code: FaultCode;
  /** Whether the fault affects only some end users, while the store still serves the others. */
  readonly isPartial: boolean;

  constructor(code: FaultCode, reason: string, { isPartial = false } = {}) {
    super(reason);
    this.code = code;
    this.isPartial = isPartial;
  }
}

/** Thrown if a store cannot be opened. The message says why, and what to do. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

/** Thrown if a client sends a cursor that Scrip did not create, or that belongs to another list. */
export class InvalidCursor extends Error {
  override readonly name = 'InvalidCursor';

  constructor() {
    super('This cursor does not belong to this list.');
  }
}
