// Tests that concurrent calls are linearizable and spend no credit twice. The controls are stores with deliberate
// bugs, and a service without locks.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { ACCEPTED } from '../batching/stalled-store.ts';
import { control, effort } from '../effort.ts';
import { startScrip } from '../http/running-service.ts';
import { Random } from '../load/random.ts';
import { auditProblems, newKey, type ServerProcess } from '../load/server-process.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { ALL_RACES, doubleSpends, FEW_SOCKETS, MANY_SOCKETS, Spenders } from './double-spend.ts';
import { recordOnPostgres, recordOnSqlite, type Size } from './linearizable.ts';
import { RecordedClients } from './recorded-clients.ts';
import { startServers } from './servers.ts';

const TEST_MS_MAX = 120_000;
/** Few clients, because the checker tries every order of the calls before it rejects a history. */
const CONTROL_SIZE: Size = { endUsers: 4, clients: 5, calls: 100 };
/** More than one round, because the responses of a single round might not show the bug of a control. */
const HISTORY_ROUNDS = 8;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

let postgres: PostgresServer;
before(async () => {
  // The tests kill processes, not the machine, so committed writes survive without fsync.
  postgres = await PostgresServer.start({ fsync: 'off' });
});
after(() => postgres.remove());

describe(`concurrent clients (SEED=${SEED})`, () => {
  test('histories of concurrent clients on SQLite are linearizable', { timeout: TEST_MS_MAX }, async (t) => {
    const { faults, histories, unchecked, operations } = await recordOnSqlite(SEED, effort(1, 5));
    assert.deepEqual(faults, []);
    assert(unchecked <= 1, `${unchecked} of ${histories} histories are too long to check`);
    t.diagnostic(`${histories} histories with ${operations} operations in total`);
  });

  test('histories of concurrent clients on PostgreSQL are linearizable, even if processes and connections are killed', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const found = await recordOnPostgres(postgres, SEED, effort(1, 2));
    assert.deepEqual(found.faults, []);
    assert(found.unchecked <= 1, `${found.unchecked} of ${found.histories} histories are too long to check`);
    assert(found.processesKilled > 0 && found.unknown + found.repeated > 0, 'some calls were hit by a fault');
    t.diagnostic(JSON.stringify(found));
  });
});

async function faultsWith(
  t: test.TestContext,
  broken: (store: Pick<LedgerStore, 'load' | 'write'>) => Partial<LedgerStore>,
  rounds = HISTORY_ROUNDS,
): Promise<string[]> {
  const scrip = await startScrip();
  t.after(() => scrip.stop());
  const { ledger } = scrip.service.stores;
  Object.assign(ledger, broken(bound(ledger)));
  const random = new Random(SEED);
  for (let round = 0; round < rounds; round++) {
    const clients = new RecordedClients({ ...CONTROL_SIZE, key: scrip.writeKey, ports: () => [scrip.port], random });
    await clients.record();
    const { faults } = clients.check();
    if (faults.length > 0) return faults;
  }
  return [];
}

describe('controls for the linearizability test', () => {
  test('histories of concurrent clients on an unmodified store are linearizable', async (t) => {
    assert.deepEqual(await faultsWith(t, () => ({}), effort(2, HISTORY_ROUNDS)), []);
  });

  control('control: the linearizability test catches a store with occasional stale reads', async (t) => {
    const faults = await faultsWith(t, ({ load }) => {
      const earlier = new Map<string, ReturnType<typeof load>>();
      let reads = 0;
      return {
        load(user) {
          reads += 1;
          const before = earlier.get(user.endUser);
          if (reads % 10 === 0 && before !== undefined) return before;
          const loaded = load(user);
          earlier.set(user.endUser, loaded);
          return loaded;
        },
      };
    });
    assert.notDeepEqual(faults, []);
  });

  control('control: the linearizability test catches a store that loses one addition in twenty', async (t) => {
    const faults = await faultsWith(t, ({ write }) => {
      let additions = 0;
      return {
        async write(commands, onDecided) {
          const isLost = commands.at(-1)?.kind === 'add' && ++additions % 20 === 0;
          if (!isLost) return write(commands, onDecided);
          const others = commands.length > 1 ? await write(commands.slice(0, -1), onDecided) : [];
          return [...others, ACCEPTED];
        },
      };
    });
    assert.notDeepEqual(faults, []);
  });

  control(
    'control: the linearizability test catches a store that releases every second hold without being asked',
    async (t) => {
      const faults = await faultsWith(t, ({ write }) => {
        let holds = 0;
        return {
          async write(commands, onDecided) {
            const outcomes = await write(commands, onDecided);
            for (const [index, command] of commands.entries()) {
              const outcome = outcomes[index];
              const holdId = command.kind === 'hold' && outcome?.refused === null ? outcome.transactionId : null;
              if (command.kind !== 'hold' || holdId === null || ++holds % 2 > 0) continue;
              const { account, endUser, actor } = command;
              await write([{ kind: 'release', account, endUser, actor, holdId }], () => {});
            }
            return outcomes;
          },
        };
      });
      assert.notDeepEqual(faults, []);
    },
  );
});

function bound(store: LedgerStore): Pick<LedgerStore, 'load' | 'write'> {
  return { load: store.load.bind(store), write: store.write.bind(store) };
}

/** More than one round, because the requests of a single round might not overlap. */
const CONTROL_ROUNDS_MAX = 3;
/** Pipelined requests on one socket reach a server one after another, so requests on many sockets overlap more. */
const SOCKETS = effort([MANY_SOCKETS], [FEW_SOCKETS, MANY_SOCKETS]);

async function spendersAt(
  t: test.TestContext,
  servers: readonly ServerProcess[],
  key: string,
  sockets: readonly number[],
): Promise<readonly Spenders[]> {
  const ports = servers.map(({ port }) => port);
  const spenders = await Promise.all(sockets.map((count) => Spenders.open(ports, count, key)));
  t.after(() => spenders.map((each) => each.close()));
  return spenders;
}

async function started(
  t: test.TestContext,
  ...how: Parameters<typeof startServers>
): Promise<readonly ServerProcess[]> {
  const servers = await startServers(...how);
  t.after(() => Promise.all(servers.map((server) => server.end('SIGKILL'))));
  return servers;
}

describe('1,000 concurrent requests', () => {
  test('on SQLite, 1,000 concurrent requests spend, hold or return exactly the available credits, whether they use four sockets or 1,000', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const url = `file:${temporaryFile()}`;
    const key = await newKey(url);
    const servers = await started(t, 1, url);
    const spenders = await spendersAt(t, servers, key, [FEW_SOCKETS, MANY_SOCKETS]);
    const found = await doubleSpends(spenders, effort(1, 2) * ALL_RACES.length);
    assert.deepEqual([found.overGrants, found.faults], [0, []]);
    await servers[0]?.end();
    assert.deepEqual(await auditProblems(url), []);
  });

  test('on PostgreSQL, 1,000 concurrent requests to three processes spend, hold or return exactly the available credits', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const url = await postgres.createDatabase();
    const key = await newKey(url);
    const servers = await started(t, 3, url, { DATABASE_ACCEPT_UNSAFE: 'yes' });
    const found = await doubleSpends(await spendersAt(t, servers, key, SOCKETS), ALL_RACES.length);
    assert.deepEqual([found.overGrants, found.faults], [0, []]);
    await Promise.all(servers.map((server) => server.end()));
    assert.deepEqual(await auditProblems(url), []);
  });

  control(
    'control: on a service without locks, 1,000 concurrent requests spend or return too many credits',
    {
      timeout: TEST_MS_MAX,
    },
    async (t) => {
      const script = join(import.meta.dirname, 'unlocked-service.ts');
      const servers = await started(t, 1, await postgres.createDatabase(), {}, script);
      for (const spenders of await spendersAt(t, servers, '', SOCKETS))
        for (const race of ALL_RACES) {
          let [rounds, overGrants] = [0, 0];
          while (overGrants === 0 && rounds++ < CONTROL_ROUNDS_MAX)
            overGrants = (await doubleSpends([spenders], 1, [race])).overGrants;
          assert(overGrants > 0, `${race}: not caught in ${rounds} rounds`);
          t.diagnostic(`${race}: ${overGrants} requests succeeded that should have been refused`);
        }
    },
  );
});
