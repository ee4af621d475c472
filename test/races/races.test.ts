// What happens to an end user at the same time is what one request after the other would have done, and no credit is
// spent twice; and a ledger that is broken in these ways is caught. At length: `npm run races`.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { Random } from '../load/random.ts';
import { findingsOf, newKey, ServerProcess } from '../load/server-process.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { doubleSpends, FEW_SOCKETS, MANY_SOCKETS, Spenders } from './double-spend.ts';
import { recordOnPostgres, recordOnSqlite, SIZE } from './linearizable.ts';
import { RecordedClients } from './recorded-clients.ts';

const TEST_MS_MAX = 120_000;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

let postgres: PostgresServer;
before(async () => {
  // The machine stays up: what was written survives without fsync, which would only cost time.
  postgres = await PostgresServer.start({ fsync: 'off' });
});
after(() => postgres.remove());

describe(`histories of several clients at once are linearizable (SEED=${SEED})`, () => {
  test('on SQLite', { timeout: TEST_MS_MAX }, async (t) => {
    const { faults, histories, operations } = await recordOnSqlite(SEED, 5);
    assert.deepEqual(faults, []);
    t.diagnostic(`${histories} histories of ${operations} operations`);
  });

  test('on PostgreSQL, with three processes, while processes and connections are killed', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const found = await recordOnPostgres(postgres, SEED, 2);
    assert.deepEqual(found.faults, []);
    assert(found.processesKilled > 0 && found.unknown + found.repeated > 0, 'the faults were felt');
    t.diagnostic(JSON.stringify(found));
  });
});

/** What a round of clients sees of a service in this process, whose store was tampered with. */
async function faultsWith(t: test.TestContext, tamper: (store: Scrip['service']['store']) => void): Promise<string[]> {
  const scrip = await startScrip();
  t.after(() => scrip.stop());
  tamper(scrip.service.store);
  const run = { ...SIZE, key: scrip.writeKey, ports: () => [scrip.port], random: new Random(SEED) };
  const clients = new RecordedClients(run);
  await clients.record();
  return clients.faults();
}

describe('controls: a store that is broken is caught', () => {
  test('and one that is not is left in peace', async (t) => {
    assert.deepEqual(await faultsWith(t, () => {}), []);
  });

  test('one that now and then shows what was there before', async (t) => {
    const faults = await faultsWith(t, (store) => {
      const read = store.cycles.bind(store);
      const earlier = new Map<string, ReturnType<typeof read>>();
      let reads = 0;
      t.mock.method(store, 'cycles', (user: Parameters<typeof read>[0]) => {
        reads += 1;
        const before = earlier.get(user.endUser);
        if (reads % 10 === 0 && before !== undefined) return before;
        const loaded = read(user);
        earlier.set(user.endUser, loaded);
        return loaded;
      });
    });
    assert.notDeepEqual(faults, []);
  });

  test('one that loses one update in twenty', async (t) => {
    const faults = await faultsWith(t, (store) => {
      const write = store.write.bind(store);
      let writes = 0;
      t.mock.method(store, 'write', async (commands: Parameters<typeof write>[0]) => {
        const last = commands.at(-1)?.kind;
        const isLost = (last === 'add' || last === 'subtract') && ++writes % 20 === 0;
        if (!isLost) return write(commands);
        const others = commands.length > 1 ? await write(commands.slice(0, -1)) : [];
        return [...others, { refused: null, cycle: null }];
      });
    });
    assert.notDeepEqual(faults, []);
  });
});

const SHAPES = [
  ['pipelined on few sockets', FEW_SOCKETS],
  ['on as many sockets', MANY_SOCKETS],
] as const;

for (const [shape, sockets] of SHAPES) {
  describe(`1,000 requests at once, ${shape}, for one credit each of 100`, () => {
    test('100 succeed, 10 times, on SQLite', { timeout: TEST_MS_MAX }, async (t) => {
      const url = `file:${temporaryFile()}`;
      const key = await newKey(url);
      const server = await ServerProcess.start(url);
      t.after(() => server.end('SIGKILL'));
      const spenders = await Spenders.open([server.port], sockets, key);
      t.after(() => spenders.close());
      const found = await doubleSpends([spenders], 10);
      assert.deepEqual([found.overGrants, found.faults], [0, []]);
      await server.end();
      assert.deepEqual(await findingsOf(url), []);
    });

    test('100 succeed, 5 times, on PostgreSQL with three processes', { timeout: TEST_MS_MAX }, async (t) => {
      const url = await postgres.createDatabase();
      const key = await newKey(url);
      const environment = { DATABASE_ACCEPT_UNSAFE: 'yes' };
      const servers = await Promise.all([1, 2, 3].map(() => ServerProcess.start(url, environment)));
      t.after(() => Promise.all(servers.map((server) => server.end('SIGKILL'))));
      const ports = servers.map(({ port }) => port);
      const spenders = await Spenders.open(ports, sockets, key);
      t.after(() => spenders.close());
      const found = await doubleSpends([spenders], 5);
      assert.deepEqual([found.overGrants, found.faults], [0, []]);
      await Promise.all(servers.map((server) => server.end()));
      assert.deepEqual(await findingsOf(url), []);
    });

    test('control: of a service that locks nothing more than 100 succeed', { timeout: TEST_MS_MAX }, async (t) => {
      const script = join(import.meta.dirname, 'unlocked-service.ts');
      const server = await ServerProcess.start(await postgres.createDatabase(), {}, script);
      t.after(() => server.end('SIGKILL'));
      const spenders = await Spenders.open([server.port], sockets, '');
      t.after(() => spenders.close());
      const found = await doubleSpends([spenders], 1);
      assert(found.overGrants > 0, JSON.stringify(found));
      t.diagnostic(`${found.overGrants} credits were spent that were not there`);
    });
  });
}
