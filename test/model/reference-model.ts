// A second, slow and simple implementation of the ledger. It shares no code with the real implementation.

import { cycleOf, decide } from './model-commands.ts';
import { EndUser, type Happened, LAST_INSTANT, sumOf, type Turned } from './model-end-user.ts';
import type {
  ModelBalance,
  ModelCommand,
  ModelHistoryEntry,
  ModelOutcome,
  ModelPreview,
  ModelRefused,
  ModelUser,
} from './model-types.ts';

export type StartCommand = Extract<ModelCommand, { kind: 'start-cycle' }>;

interface Known {
  readonly user: EndUser;
  readonly past: { readonly at: number; readonly user: EndUser }[];
}

export class ReferenceLedger {
  /** The machine's clock, which may jump forward and back. */
  wall: number;
  /** The instant of the last read or write. The time of the ledger is never earlier than this instant. */
  #latest = 0;
  readonly #users = new Map<string, Known>();
  /** Cached, because the next call is usually for the same end user. */
  #latestUser: { readonly of: ModelUser; readonly known: Known } | null = null;
  readonly #ids = new Set<string>();

  constructor(wall: number) {
    this.wall = wall;
  }

  peek(): number {
    return Math.max(this.#latest, this.wall);
  }

  /** `id` comes from the real ledger, because the model cannot predict random IDs. */
  run(command: ModelCommand, id: string): ModelOutcome {
    const now = this.#now();
    const { user, past } = this.#find(command) ?? this.#add(command);
    user.passTime(now);
    const outcome = decide(user, command, { now, id });
    if (outcome.refused !== null || outcome.transactionId === null) return outcome;
    if (this.#ids.has(id)) throw new Error(`the ID ${id} is already used`);
    this.#ids.add(id);
    if (past.at(-1)?.at === now) past.pop();
    past.push({ at: now, user: user.copy({ withHistory: false }) });
    return outcome;
  }

  previewAt(command: StartCommand, now: number): ModelPreview | ModelRefused {
    const user = this.#view(command, now).copy({ withHistory: false });
    user.passTime(now);
    const ending = user.active(now);
    const outcome = decide(user, command, { now, id: 'a preview' });
    if (outcome.refused !== null) return outcome;
    const [balance, entries] = [user.balance(now), user.valid(now).map((grant) => cycleOf(user, grant))];
    const isScheduled = outcome.cycle?.next != null;
    const startsAt = outcome.cycle?.next?.startsAt ?? now;
    user.passTime(startsAt);
    const expiring = isScheduled ? (ending?.left ?? 0) : 0;
    return { refused: null, startsAt, entries, balance, balanceAtStart: user.balance(startsAt), expiring };
  }

  preview(command: StartCommand): ModelPreview | ModelRefused {
    return this.previewAt(command, this.#now());
  }

  turnsOf(of: ModelUser): readonly Turned[] {
    return this.#find(of)?.user.turns ?? [];
  }

  balance(of: ModelUser): ModelBalance {
    return this.balanceAt(of, this.#now());
  }

  transactions(of: ModelUser): Happened[] {
    return this.transactionsAt(of, this.#now());
  }

  /** Returns all transactions, newest first. Includes those that the list of transactions omits. */
  history(of: ModelUser): ModelHistoryEntry[] {
    return this.historyAt(of, this.#now());
  }

  historyAt(of: ModelUser, now: number): ModelHistoryEntry[] {
    const { happened } = this.#view(of, now);
    // A copy of the end user has an empty `spent`, so read `refundable` from the original.
    const refundable = (id: string | null) => this.#find(of)?.user.refundable(id) ?? null;
    return happened.toReversed().map((each) => ({ ...each, refundable: refundable(each.id) }));
  }

  /** Does not advance the time of the ledger. */
  balanceAt(of: ModelUser, at: number): ModelBalance {
    const user = this.#view(of, at);
    return {
      balance: user.balance(at),
      held: user.held(),
      entries: user.valid(at).map((grant) => cycleOf(user, grant)),
      holds: user.holds.map(({ id, pieces, createdAt, expiresAt }) => {
        return { id, amount: sumOf(pieces), createdAt, expiresAt };
      }),
    };
  }

  transactionsAt(of: ModelUser, now: number): Happened[] {
    return this.#view(of, now).listed().reverse();
  }

  latestDue(of: ModelUser, now: number): number {
    const known = this.#find(of);
    if (known === undefined || !known.user.isDue(now)) return 0;
    return this.#view(of, now).happened.at(-1)?.createdAt ?? 0;
  }

  /** Settles all end users with due events. If no event is due, does not advance the time of the ledger. */
  tick(): void {
    const due = [...this.#users.values()].filter(({ user }) => user.isDue(this.peek()));
    if (due.length > 0) this.#now();
    for (const { user } of due) user.passTime(this.peek());
  }

  /** Advances the time of the ledger, as a service does at its start and when it replays a response. */
  lookAtClock(): void {
    this.#now();
  }

  endUsers(): number {
    return [...this.#users.values()].filter(({ user }) => user.happened.length > 0).length;
  }

  peekBalance(of: ModelUser): ModelBalance {
    return this.balanceAt(of, this.peek());
  }

  refundable(of: ModelUser, id: string): number | null {
    return this.#find(of)?.user.refundable(id) ?? null;
  }

  spentBy(of: ModelUser): readonly string[] {
    return [...(this.#find(of)?.user.spent.keys() ?? [])];
  }

  idsOf(of: ModelUser): readonly string[] {
    return this.#find(of)?.user.happened.flatMap(({ id }) => id ?? []) ?? [];
  }

  instantsOf(of: ModelUser): readonly number[] {
    return this.#find(of)?.past.map(({ at }) => at) ?? [];
  }

  renewalOf(of: ModelUser): number | null {
    return this.#view(of, this.peek()).renewing()?.end ?? null;
  }

  boundaries(): number[] {
    const now = this.peek();
    const instants = [...this.#users.values()].flatMap(({ user }) => {
      const copy = user.copy({ withHistory: false });
      copy.passTime(now);
      return [...copy.valid(now).map(({ end }) => end), ...copy.holds.map(({ expiresAt }) => expiresAt)];
    });
    return [...new Set(instants.filter((instant) => instant < LAST_INSTANT))].sort((a, b) => a - b);
  }

  #now(): number {
    this.#latest = this.peek();
    return this.#latest;
  }

  #add(of: ModelUser): Known {
    const known: Known = { user: new EndUser(), past: [] };
    this.#users.set(keyOf(of), known);
    return known;
  }

  #find(of: ModelUser): Known | undefined {
    const latest = this.#latestUser;
    if (latest !== null && latest.of.endUser === of.endUser && latest.of.account === of.account) return latest.known;
    const known = this.#users.get(keyOf(of));
    if (known !== undefined) this.#latestUser = { of, known };
    return known;
  }

  /** The caller must not change the returned object. */
  #view(of: ModelUser, at: number): EndUser {
    const known = this.#find(of);
    if (known === undefined) return new EndUser();
    const isPast = at < known.user.passedTo;
    const user = isPast ? known.past.findLast((each) => each.at <= at)?.user : known.user;
    if (user === undefined) return new EndUser();
    if (!isPast && !user.isDue(at)) return user;
    const copy = user.copy({ withHistory: !isPast });
    copy.passTime(at);
    return copy;
  }
}

function keyOf({ account, endUser }: ModelUser): string {
  return `${account}/${endUser}`;
}
