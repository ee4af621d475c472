// Serves the account pages of the console with a ledger in memory. A request header identifies the viewer's account,
// so the tests need no sessions.

import formbody from '@fastify/formbody';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyRequest,
  type LightMyRequestResponse,
} from 'fastify';
import { hintOf } from '../../src/accounts/api-key.ts';
import { ConsoleContext, type ConsoleOptions } from '../../src/console/console-context.ts';
import { answerError } from '../../src/console/error-reply.ts';
import type { Identity } from '../../src/console/identity/identity.ts';
import type { Viewer } from '../../src/console/layout.ts';
import { routesOf } from '../../src/console/permissions.ts';
import { apiKeyRoutes } from '../../src/console/routes/api-keys.ts';
import { endUserRoutes } from '../../src/console/routes/end-user/end-user.ts';
import { endUserListRoutes } from '../../src/console/routes/end-users.ts';
import { overviewRoutes } from '../../src/console/routes/overview.ts';
import { SecretBox } from '../../src/events/webhooks/secrets.ts';
import type { EndUserKey } from '../../src/ledger/command.ts';
import type { AccountKey, ListedKey } from '../../src/store/key-store.ts';
import type { StoreFault } from '../../src/store/store-fault.ts';
import { type CommandWithout, MemoryStore } from './memory-store.ts';

export const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

class MemoryContext extends ConsoleContext {
  override async viewerOf({ headers }: FastifyRequest): Promise<Viewer> {
    return viewerOf(Number(headers['x-account'] ?? 1));
  }

  override async identity(): Promise<Identity> {
    const members = { list: async (account: number) => [{ ...viewerOf(account), joinedAt: 0 }] };
    return { members } as unknown as Identity;
  }
}

interface PageReply {
  readonly status: number;
  readonly text: string;
  readonly location: string;
}

export class MemoryConsole {
  /** The errors that Fastify has logged. */
  readonly errors: string[] = [];
  readonly app: FastifyInstance = Fastify({
    logger: { level: 'error', stream: { write: (line: string) => void this.errors.push(line) } },
  });
  readonly keys: (ListedKey & { readonly secret: string })[] = [];
  readonly #sentForms = new Set<string>();
  readonly ledger = new MemoryStore(Date.UTC(2026, 10, 20, 14, 5, 31, 204));
  fault: StoreFault | null = null;

  static async start(): Promise<MemoryConsole> {
    const console = new MemoryConsole();
    const { app } = console;
    await app.register(formbody);
    const context = new MemoryContext(console.#options());
    app.setErrorHandler((error: FastifyError, request, reply) => answerError(context, error, request, reply));
    const on = routesOf(app, '', context);
    overviewRoutes(on, context);
    endUserListRoutes(on, context);
    endUserRoutes(on, context);
    apiKeyRoutes(on, context);
    return console;
  }

  advance(milliseconds: number): void {
    this.ledger.now += milliseconds;
  }

  run(command: CommandWithout<keyof EndUserKey | 'actor'>): string {
    return this.ledger.transact({ account: 1, endUser: END_USER, actor: 'key:1', ...command });
  }

  async get(url: string, account = 1): Promise<PageReply> {
    return replyOf(await this.app.inject({ url, headers: { 'x-account': String(account) } }));
  }

  async post(url: string, fields: Record<string, string>, account = 1): Promise<PageReply> {
    const headers = { 'x-account': String(account), 'content-type': 'application/x-www-form-urlencoded' };
    // Like browsers, send the validity, which the forms contain initially.
    const initial = /\/(?:add|start-cycle)$/.test(url) ? { validity: '31', unit: 'days' } : {};
    const payload = new URLSearchParams({ ...initial, ...fields }).toString();
    return replyOf(await this.app.inject({ method: 'POST', url, headers, payload }));
  }

  #options(): ConsoleOptions {
    return {
      stores: {
        console: this.ledger,
        ledger: this.ledger,
        keys: {
          list: async (account) => this.keys.filter((key) => key.account === account),
          revoke: async (id, owner) => this.#revoke(id, owner),
          createFor: async (account, key) => {
            const fault = this.#nextFault();
            if (fault !== null) throw fault;
            const { formSha256 = null } = key;
            if (formSha256 !== null && this.#sentForms.has(formSha256)) return null;
            if (formSha256 !== null) this.#sentForms.add(formSha256);
            return this.#create(account, key);
          },
        },
      },
      commit: {
        submit: (command, respond) => {
          const fault = this.#nextFault();
          setImmediate(() => respond(fault ?? this.ledger.submit(command)));
        },
      },
      now: () => this.ledger.now,
      settings: { publicUrl: 'http://127.0.0.1:8080', signUp: 'closed', mail: null },
      openDatabase: () => Promise.reject(new Error('there is no console database')),
      webhooks: {
        openSecrets: () => new SecretBox('0'.repeat(64)),
        rules: { allowPrivate: false, allowLoopback: true },
      },
      listeningUrl: () => 'http://127.0.0.1:8080',
      logger: this.app.log,
    };
  }

  #nextFault(): StoreFault | null {
    const { fault } = this;
    this.fault = null;
    return fault;
  }

  #create(account: number, { scope, secret, name = '', by = 'operator' }: AccountKey): ListedKey {
    const id = this.keys.length + 1;
    const times = { createdAt: this.ledger.now, createdBy: by, revokedAt: null, revokedBy: null, lastUsedAt: null };
    const key = { id, account, accountName: '', scope, name, secret, hint: hintOf(secret), ...times };
    this.keys.push(key);
    return key;
  }

  #revoke(id: number, owner: { readonly account: number; readonly by: string } | undefined): boolean {
    const index = this.keys.findIndex((key) => key.id === id && key.account === owner?.account);
    const key = this.keys[index];
    if (key) this.keys[index] = { ...key, revokedAt: this.ledger.now, revokedBy: owner?.by ?? null };
    return key !== undefined;
  }
}

function viewerOf(account: number): Viewer {
  const accountName = `Account ${account}`;
  return { account, accountName, role: 'owner', userId: `u${account}`, email: `owner${account}@example.com` };
}

function replyOf({ statusCode, body, headers }: LightMyRequestResponse): PageReply {
  return { status: statusCode, text: body, location: String(headers.location ?? '') };
}
