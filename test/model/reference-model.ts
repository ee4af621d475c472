// A second, slow and simple implementation of the ledger: a list of grants of credits and a list of transactions. It is
// written from the interface and shares no code with the real implementation, so that a rule is trusted if both agree.

const DAY = 24 * 60 * 60 * 1000;
const MOST = 2 ** 53 - 1;
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export interface ModelUser {
  readonly account: number;
  readonly endUser: string;
}

export type ModelCommand = ModelUser & { readonly actor: string } & (
    | { readonly kind: 'add'; readonly amount: number; readonly validityDays: number }
    | { readonly kind: 'subtract'; readonly amount: number }
    | {
        readonly kind: 'start-cycle';
        readonly amount: number;
        readonly validityDays: number;
        readonly onActive: 'refuse' | 'replace';
      }
    | { readonly kind: 'stop-cycle' }
  );

export interface ModelCycle {
  readonly type: 'one-time' | 'recurring';
  readonly status: 'active' | 'canceled';
  readonly amount: number;
  readonly remaining: number;
  readonly createdAt: number;
  readonly start: number;
  readonly end: number;
}

export type ModelOutcome =
  | { readonly refused: null; readonly cycle: ModelCycle | null }
  | {
      readonly refused: 'InsufficientFunds' | 'BalanceTooLarge';
      readonly requested: number;
      readonly available: number;
    }
  | { readonly refused: 'CycleAlreadyActive'; readonly cycle: ModelCycle }
  | { readonly refused: 'CycleNotFound' };

export interface ModelTransaction {
  readonly kind: string;
  readonly amount: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly actor: string;
}

export interface ModelBalance {
  readonly balance: number;
  /** Oldest first. */
  readonly entries: readonly ModelCycle[];
}

/** Credits that begin at one instant and end at another: an addition, or one period of a recurring cycle. */
interface Grant {
  readonly type: 'one-time' | 'recurring';
  readonly amount: number;
  readonly validityDays: number;
  /** The instant of the addition, or of the start of the first period. */
  readonly createdAt: number;
  readonly start: number;
  readonly end: number;
  left: number;
  canceled: boolean;
  /** Whether another period has followed this one. */
  followed: boolean;
  /** The number of the recurring cycle, counted from 1; 0 for an addition. */
  readonly started: number;
}

class EndUser {
  /** In order of creation. Ended grants are removed when time advances. */
  grants: Grant[];
  /** In order of creation. */
  readonly happened: ModelTransaction[];
  /** The number of recurring cycles started so far. */
  starts = 0;

  constructor(grants: Grant[] = [], happened: ModelTransaction[] = []) {
    this.grants = grants;
    this.happened = happened;
  }

  copy(): EndUser {
    return new EndUser(
      this.grants.map((grant) => ({ ...grant })),
      this.happened.slice(),
    );
  }

  /** The period that is renewed at its end, whether or not the renewal is due. */
  renewing(): Grant | undefined {
    for (let place = this.grants.length - 1; place >= 0; place--) {
      const grant = this.grants[place] as Grant;
      if (grant.type === 'recurring' && !grant.canceled && !grant.followed && grant.end < LAST_INSTANT) return grant;
    }
    return undefined;
  }

  isDue(now: number): boolean {
    const grant = this.renewing();
    return grant !== undefined && grant.end <= now;
  }

  /** Makes all due renewals, each at the end of the previous period, and removes ended grants for good. */
  passTime(now: number): void {
    for (let ended = this.renewing(); ended !== undefined && ended.end <= now; ended = this.renewing()) {
      ended.followed = true;
      const { amount, validityDays, createdAt, started, end: start } = ended;
      this.open({ type: 'recurring', amount, validityDays, createdAt, started, start }, 'renew', 'renewal');
    }
    if (this.grants.some((grant) => grant.end <= now)) this.grants = this.grants.filter((grant) => grant.end > now);
  }

  /** The grants that count at `now`, in burn order: by start, then by creation. */
  valid(now: number): Grant[] {
    const valid = this.grants.filter((grant) => grant.start <= now && now < grant.end);
    // Grants are mostly sorted already, and sorting takes longer than everything else.
    const areInOrder = valid.every((grant, index) => index === 0 || (valid[index - 1] as Grant).start <= grant.start);
    return areInOrder ? valid : valid.sort((a, b) => a.start - b.start);
  }

  balance(now: number): number {
    let sum = 0;
    for (const grant of this.valid(now)) {
      sum += grant.left;
      // Checked at each step, before the sum is so large that it is rounded.
      if (sum > MOST) throw new Error(`the model has a balance of ${sum}`);
    }
    return sum;
  }

  /** The active recurring cycle at `now`. */
  active(now: number): Grant | undefined {
    return this.valid(now).find((grant) => grant.type === 'recurring' && !grant.canceled);
  }

  open(wanted: Omit<Grant, 'end' | 'left' | 'canceled' | 'followed'>, kind: string, actor: string) {
    const end = Math.min(wanted.start + wanted.validityDays * DAY, LAST_INSTANT);
    const grant: Grant = { ...wanted, end, left: wanted.amount, canceled: false, followed: false };
    this.grants.push(grant);
    this.happened.push({ kind, amount: wanted.amount, createdAt: wanted.start, expiresAt: end, actor });
    return grant;
  }

  /** How many credits that last until `end` may be added, given the balance now and after the next renewal. */
  room(now: number, end: number): number {
    const room = MOST - this.balance(now);
    const active = this.active(now);
    if (active === undefined || active.end >= LAST_INSTANT || end <= active.end) return room;
    const then = new EndUser(this.valid(now).map((grant) => ({ ...grant })));
    then.passTime(active.end);
    return Math.min(room, MOST - then.balance(active.end));
  }
}

export class ReferenceLedger {
  /** The clock of the machine; it may jump in both directions. */
  wall: number;
  /** The latest instant of any write or read: the time of the ledger never goes back before it. */
  #latest = 0;
  readonly #users = new Map<string, EndUser>();
  /** A cache of the end user of the last call, because the next call is mostly for the same end user. */
  #latestUser: { readonly of: ModelUser; readonly user: EndUser } | null = null;

  constructor(wall: number) {
    this.wall = wall;
  }

  /** Returns the time of the ledger without advancing it. */
  peek(): number {
    return Math.max(this.#latest, this.wall);
  }

  run(command: ModelCommand): ModelOutcome {
    const now = this.#now();
    const user = this.#find(command) ?? this.#add(command);
    user.passTime(now);
    switch (command.kind) {
      case 'add':
        return add(user, command, now);
      case 'subtract':
        return subtract(user, command, now);
      case 'start-cycle':
        return startCycle(user, command, now);
      case 'stop-cycle':
        return stopCycle(user, now);
    }
  }

  balance(of: ModelUser): ModelBalance {
    return this.balanceAt(of, this.#now());
  }

  /** Newest first. */
  transactions(of: ModelUser): ModelTransaction[] {
    return this.transactionsAt(of, this.#now());
  }

  /** Like `balance`, but at a given instant and without advancing the time of the ledger. */
  balanceAt(of: ModelUser, now: number): ModelBalance {
    const user = this.#view(of, now);
    return { balance: user.balance(now), entries: user.valid(now).map(cycleOf) };
  }

  transactionsAt(of: ModelUser, now: number): ModelTransaction[] {
    return this.#view(of, now).happened.toReversed();
  }

  /** The instant of the latest renewal that is due at `now` and not stored; 0 if there is none. */
  renewalDue(of: ModelUser, now: number): number {
    const user = this.#find(of);
    if (user === undefined || !user.isDue(now)) return 0;
    return this.#view(of, now).happened.at(-1)?.createdAt ?? 0;
  }

  /**
   * Does the same as a round of the renewal job: stores due renewals. Without any, the time of the ledger does not
   * advance.
   */
  tick(): void {
    const due = [...this.#users.values()].filter((user) => user.isDue(this.peek()));
    if (due.length > 0) this.#now();
    for (const user of due) user.passTime(this.peek());
  }

  /** Advances the time of the ledger, as a service does at each start and when it replays a response. */
  lookAtClock(): void {
    this.#now();
  }

  /** The number of end users with a history. */
  endUsers(): number {
    return [...this.#users.values()].filter((user) => user.happened.length > 0).length;
  }

  /** The current balance of an end user, without advancing the time of the ledger. */
  peekBalance(of: ModelUser): number {
    return this.#view(of, this.peek()).balance(this.peek());
  }

  /** The future instants at which cycles end, soonest first. */
  boundaries(): number[] {
    const now = this.peek();
    const grants = [...this.#users.values()].flatMap((user) => {
      const copy = user.copy();
      copy.passTime(now);
      return copy.valid(now);
    });
    const ends = grants.map((grant) => grant.end).filter((end) => end < LAST_INSTANT);
    return [...new Set(ends)].sort((a, b) => a - b);
  }

  #now(): number {
    this.#latest = this.peek();
    return this.#latest;
  }

  #add(of: ModelUser): EndUser {
    const user = new EndUser();
    this.#users.set(keyOf(of), user);
    return user;
  }

  #find(of: ModelUser): EndUser | undefined {
    const latest = this.#latestUser;
    if (latest !== null && latest.of.endUser === of.endUser && latest.of.account === of.account) return latest.user;
    const user = this.#users.get(keyOf(of));
    if (user !== undefined) this.#latestUser = { of, user };
    return user;
  }

  /** The end user at `now`, with due renewals made; the caller must not change it. */
  #view(of: ModelUser, now: number): EndUser {
    const user = this.#find(of) ?? new EndUser();
    if (!user.isDue(now)) return user;
    const copy = user.copy();
    copy.passTime(now);
    return copy;
  }
}

type Of<Kind extends ModelCommand['kind']> = Extract<ModelCommand, { kind: Kind }>;

function add(user: EndUser, { amount, validityDays, actor }: Of<'add'>, now: number): ModelOutcome {
  const available = user.room(now, Math.min(now + validityDays * DAY, LAST_INSTANT));
  if (amount > available) return { refused: 'BalanceTooLarge', requested: amount, available };
  user.open({ type: 'one-time', amount, validityDays, createdAt: now, start: now, started: 0 }, 'add', actor);
  return { refused: null, cycle: null };
}

function subtract(user: EndUser, { amount, actor }: Of<'subtract'>, now: number): ModelOutcome {
  const available = user.balance(now);
  if (amount > available) return { refused: 'InsufficientFunds', requested: amount, available };
  let wanted = amount;
  let expiresAt = 0;
  for (const grant of user.valid(now)) {
    const drawn = Math.min(wanted, grant.left);
    if (drawn === 0) continue;
    grant.left -= drawn;
    wanted -= drawn;
    expiresAt = Math.max(expiresAt, grant.end);
  }
  user.happened.push({ kind: 'subtract', amount: -amount, createdAt: now, expiresAt, actor });
  return { refused: null, cycle: null };
}

function startCycle(user: EndUser, command: Of<'start-cycle'>, now: number): ModelOutcome {
  const { amount, validityDays, onActive, actor } = command;
  const active = user.active(now);
  if (active && onActive === 'refuse') return { refused: 'CycleAlreadyActive', cycle: cycleOf(active) };
  // The active cycle, if any, is stopped in the same step, so it needs no room for a renewal.
  const available = MOST - user.balance(now);
  if (amount > available) return { refused: 'BalanceTooLarge', requested: amount, available };
  if (active) active.canceled = true;
  user.starts += 1;
  const wanted = { type: 'recurring', amount, validityDays, createdAt: now, start: now, started: user.starts } as const;
  return { refused: null, cycle: cycleOf(user.open(wanted, 'start-cycle', actor)) };
}

/** Stopping again returns the same cycle until another cycle is started. */
function stopCycle(user: EndUser, now: number): ModelOutcome {
  const stopped = user.valid(now).find((grant) => grant.canceled && grant.started === user.starts);
  const current = user.active(now) ?? stopped;
  if (current === undefined) return { refused: 'CycleNotFound' };
  current.canceled = true;
  return { refused: null, cycle: cycleOf(current) };
}

function cycleOf({ type, canceled, amount, left, createdAt, start, end }: Grant): ModelCycle {
  return { type, status: canceled ? 'canceled' : 'active', amount, remaining: left, createdAt, start, end };
}

function keyOf({ account, endUser }: ModelUser): string {
  return `${account}/${endUser}`;
}
