// Tests, on both stores, that the stories in docs/subscriptions.md print the lines that the document shows. `npm test`
// runs these tests only on PostgreSQL, because test/docs/code-blocks.test.ts runs the same stories on SQLite.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { effort } from '../effort.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../store/postgres/scrip-on-postgres.ts';
import { CLIENT, REPOSITORY, runNode } from './client-package.ts';

const STORIES = ['monthly-rollover', 'plan-changes', 'trial-to-plan'] as const;

const STORES = effort(['PostgreSQL'], ['PostgreSQL', 'SQLite']);

const DOCUMENT = readFileSync(join(REPOSITORY, 'docs/subscriptions.md'), 'utf8');

let server: PostgresServer;
const services = new Map<string, Scrip>();
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
  for (const store of STORES) {
    const on = store === 'PostgreSQL' ? { database: await newDatabaseOn(server) } : {};
    services.set(store, await startScrip({ testClock: true, ...on }));
  }
});
after(async () => {
  for (const scrip of services.values()) {
    await scrip.assertConsistent();
    await scrip.stop();
  }
  await server.remove();
});

for (const story of STORIES) {
  const program = join(CLIENT, 'examples', `${story}.ts`);
  for (const store of STORES) {
    test(`the ${story}.ts story prints what docs/subscriptions.md shows (${store})`, async (t) => {
      const shown = `\`\`\`ts\n${readFileSync(program, 'utf8')}\`\`\`\n\`\`\`\n`;
      const start = DOCUMENT.indexOf(shown);
      assert(start >= 0, `docs/subscriptions.md shows ${story}.ts`);
      const [lines] = DOCUMENT.slice(start + shown.length).split('```');
      const scrip = services.get(store) as Scrip;
      const env = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey };
      const began = performance.now();
      const output = await runNode({ cwd: CLIENT, env }, '--conditions=scrip-source', '--no-warnings', program);
      assert.equal(output, lines);
      t.diagnostic(`${Math.round(performance.now() - began)} ms`);
    });
  }
}
