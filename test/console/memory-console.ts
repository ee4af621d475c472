// The pages of the console on a server of their own, over a ledger in memory that is kept by the real rules: what they
// show and do, apart from sessions and stores, which have tests of their own. Who is looking says a header.

import formbody from '@fastify/formbody';
import Fastify, { type FastifyInstance } from 'fastify';
import { hintOf, type Scope } from '../../src/accounts/api-key.ts';
import { apiKeyRoutes } from '../../src/console/routes/api-keys.ts';
import type { ConsolePorts, Viewer } from '../../src/console/routes/console-ports.ts';
import { endUserRoutes } from '../../src/console/routes/end-user.ts';
import { endUserListRoutes } from '../../src/console/routes/end-users.ts';
import { overviewRoutes } from '../../src/console/routes/overview.ts';
import type { Command, EndUserKey, Idempotency, Outcome } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import { decide } from '../../src/ledger/decide.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { type Posting, transactionOf } from '../../src/ledger/posting.ts';
import { settle } from '../../src/ledger/settle.ts';
import { transactionId } from '../../src/ledger/transaction-id.ts';
import type { HistoryTransaction } from '../../src/store/account-reads.ts';
import type { ListedKey, StoreFault } from '../../src/store/store.ts';

interface Held {
  readonly key: EndUserKey;
  cycles: readonly Cycle[];
  readonly postings: (Posting & { note: string | null })[];
}

export class MemoryConsole {
  readonly app: FastifyInstance = Fastify();
  readonly keys: (ListedKey & { account: number; secret: string })[] = [];
  readonly commands: Command[] = [];
  now = Date.UTC(2026, 10, 20, 14, 5, 31, 204);
  /** What befalls the next write. */
  fault: StoreFault | null = null;
  readonly #answers = new Map<string, Outcome>();
  readonly #held = new Map<string, Held>();
  #sequence = 0;

  static async start(): Promise<MemoryConsole> {
    const console = new MemoryConsole();
    const { app } = console;
    await app.register(formbody);
    const table = {
      on(name: string, handle: (request: never, reply: never, viewer: Viewer) => unknown) {
        const [method, url] = name.split(' ') as [string, string];
        app.route({
          method,
          url,
          handler: (request, reply) => {
            const account = Number(request.headers['x-account'] ?? 1);
            const viewer = {
              account,
              accountName: `Account ${account}`,
              role: 'owner',
              userId: `u${account}`,
            } as const;
            return handle(request as never, reply as never, { ...viewer, email: `owner${account}@example.com` });
          },
        });
      },
    };
    const ports = console.#ports();
    overviewRoutes(table, ports);
    endUserListRoutes(table, ports);
    endUserRoutes(table, ports);
    apiKeyRoutes(table, ports);
    return console;
  }

  async get(url: string, account = 1): Promise<{ status: number; text: string; location: string }> {
    const { statusCode, body, headers } = await this.app.inject({ url, headers: { 'x-account': String(account) } });
    return { status: statusCode, text: body, location: String(headers.location ?? '') };
  }

  async post(
    url: string,
    fields: Record<string, string>,
    account = 1,
  ): Promise<{ status: number; text: string; location: string }> {
    const { statusCode, body, headers } = await this.app.inject({
      method: 'POST',
      url,
      headers: { 'x-account': String(account), 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams(fields).toString(),
    });
    return { status: statusCode, text: body, location: String(headers.location ?? '') };
  }

  /** A key is answered as it was the first time. */
  submit(sent: Command & { readonly idempotency?: Idempotency | null }): Outcome {
    const { idempotency, ...command } = sent;
    const name = `${command.account} ${command.endUser} ${idempotency?.key}`;
    const known = idempotency ? this.#answers.get(name) : undefined;
    if (known !== undefined) return known;
    const outcome = this.#decide(command);
    if (idempotency) this.#answers.set(name, outcome);
    return outcome;
  }

  #decide(command: Command): Outcome {
    this.commands.push(command);
    const held = this.#of(command);
    const settled = settle(held.cycles, this.now, 10_000);
    const nextId = () => transactionId({ at: this.now, sequence: ++this.#sequence, tail: 'aaaaaaaaaaaa' });
    const { cycles, postings, outcome } = decide(settled.cycles, command, { now: this.now, nextId });
    held.cycles = cycles;
    const note = (command as { note?: string | null }).note ?? null;
    held.postings.push(
      ...settled.postings.map((one) => ({ ...one, note: null })),
      ...postings.map((one) => ({ ...one, note })),
    );
    return outcome;
  }

  #of(key: EndUserKey): Held {
    const name = `${key.account} ${key.endUser}`;
    const held = this.#held.get(name) ?? { key, cycles: [], postings: [] };
    this.#held.set(name, held);
    return held;
  }

  #history(key: EndUserKey): HistoryTransaction[] {
    const groups = Map.groupBy(this.#of(key).postings, ({ transactionId }) => transactionId);
    return [...groups.values()]
      .map((postings) => ({
        ...transactionOf(postings as unknown as [Posting]),
        note: postings[0]?.note ?? null,
        postings,
      }))
      .toSorted((a, b) => (a.id < b.id ? 1 : -1));
  }

  #ports(): ConsolePorts {
    const ofAccount = (account: number) => [...this.#held.values()].filter(({ key }) => key.account === account);
    return {
      now: () => this.now,
      apiUrl: () => 'http://127.0.0.1:8080',
      emails: async (account) => new Map([[`u${account}`, `owner${account}@example.com`]]),
      cycles: async (key) => ({ now: this.now, cycles: this.#of(key).cycles }),
      commit: {
        submit: (command, answer) => {
          const fault = this.fault;
          this.fault = null;
          setImmediate(() => answer(fault ?? this.submit(command)));
        },
      },
      apiKeys: {
        list: async (account) => this.keys.filter((key) => key.account === account),
        revoke: async (id, account) => {
          const index = this.keys.findIndex((key) => key.id === id && key.account === account);
          const key = this.keys[index];
          if (key) this.keys[index] = { ...key, revokedAt: this.now };
          return key !== undefined;
        },
        createFor: async (account, { scope, secret, name }: { scope: Scope; secret: string; name: string }) => {
          const id = this.keys.length + 1;
          const times = { accountName: '', createdAt: this.now, revokedAt: null, lastUsedAt: null };
          this.keys.push({ id, account, scope, name, secret, hint: hintOf(secret), ...times });
          return { id, account, scope };
        },
      },
      reads: {
        nameOf: async () => null,
        overview: async (account, { days }) => {
          const today = this.now - (this.now % DAY_MS);
          const nothing = { transactions: 0, started: 0n, spent: 0n, expired: 0n, renewed: 0n };
          return {
            asOf: this.now,
            outstanding: BigInt(
              ofAccount(account)
                .flatMap(({ cycles }) => cycles)
                .reduce((sum, { remaining }) => sum + remaining, 0),
            ),
            endUsersWithCredits: ofAccount(account).length,
            days: Array.from({ length: days }, (_, index) => ({
              day: today - (days - 1 - index) * DAY_MS,
              added: BigInt(index),
              ...nothing,
            })),
          };
        },
        recent: async (account, limit) =>
          ofAccount(account)
            .flatMap(({ key }) => this.#history(key).map((one) => ({ ...one, endUser: key.endUser })))
            .toSorted((a, b) => (a.id < b.id ? 1 : -1))
            .slice(0, limit),
        endUsers: async (account, { after, prefix, limit }) => {
          if (after !== null && !/^[0-9a-f-]{36}$/.test(after))
            throw Object.assign(new Error('cursor'), { name: 'InvalidCursor' });
          const found = ofAccount(account)
            .filter(
              ({ key, postings }) =>
                postings.length > 0 && key.endUser.startsWith(prefix) && key.endUser > (after ?? ''),
            )
            .toSorted((a, b) => (a.key.endUser < b.key.endUser ? -1 : 1));
          const shown = found
            .slice(0, limit)
            .map(({ key, postings }) => ({ endUser: key.endUser, latestActivity: postings.at(-1)?.createdAt ?? 0 }));
          return { endUsers: shown, next: found.length > limit ? (shown.at(-1)?.endUser ?? null) : null };
        },
        history: async (key, { from, limit, since }) => {
          const all = this.#history(key).filter(({ createdAt }) => since === null || createdAt >= since);
          const start = from === null ? 0 : Number(from);
          if (!Number.isInteger(start)) throw Object.assign(new Error('cursor'), { name: 'InvalidCursor' });
          const next = start + limit < all.length ? String(start + limit) : null;
          return { now: this.now, cycles: this.#of(key).cycles, transactions: all.slice(start, start + limit), next };
        },
        cyclesSince: async (key, since) => ({
          now: this.now,
          cycles: this.#of(key).cycles.filter(({ end, status }) => end > since || status === 'active'),
        }),
      },
    };
  }
}
