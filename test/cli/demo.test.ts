// Tests `scrip demo` on a ledger file and on PostgreSQL, and the sample account that the command creates.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SECRET_BYTES } from '../../src/accounts/api-key.ts';
import { DemoLedger } from '../../src/cli/demo/demo-ledger.ts';
import { DAYS, demoHistory, END_USERS } from '../../src/cli/demo/history.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { effort } from '../effort.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { NOON, problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { auditAt } from '../store/tools/copied-ledger.ts';
import { add, assertOneLine, type Environment, ledgerAt, scrip } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

const options = { timeout: 240_000 };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

const madeWith = (seed: number) => new DemoLedger({ seed, until: NOON, randomness: new Uint8Array(SECRET_BYTES) });

async function postingsOf(ledger: DemoLedger): Promise<{ endUser: string; posting: Posting }[]> {
  const rows = (await Array.fromAsync(ledger.rows(null))).flat();
  return rows.flatMap((row) =>
    row.kind === 'transaction' ? row.postings.map((posting) => ({ endUser: row.user.endUser, posting })) : [],
  );
}

let postings: Awaited<ReturnType<typeof postingsOf>>;
before(async () => {
  postings = await postingsOf(madeWith(1));
});

test('the demo account has 200 end users with trials, bundles, and active and canceled subscriptions, and these end users spend credits mostly on weekdays', async () => {
  assert.equal(new Set(postings.map(({ endUser }) => endUser)).size, END_USERS);
  const created = postings.map(({ posting }) => posting.createdAt);
  assert(
    Math.min(...created) >= NOON - (DAYS + 1) * DAY_MS && Math.max(...created) < NOON,
    'no posting is in the future',
  );
  assert(Math.max(...created) > NOON - DAY_MS / 2, 'the last posting is less than half a day old');
  const count = (kind: Posting['kind']) => postings.filter(({ posting }) => posting.kind === kind).length;
  assert(count('add') > 250, 'trials and bundles');
  assert(count('start-cycle') > 50 && count('renew') > 20 && count('stop-cycle') > 5, 'subscriptions');
  assert(count('subtract') > 3_000);
  const ofDays = (days: readonly number[]) =>
    postings.filter(({ posting: { kind, createdAt } }) => {
      return kind === 'subtract' && days.includes(new Date(createdAt).getUTCDay());
    }).length / days.length;
  assert(
    ofDays([1, 2, 3, 4, 5]) > 2 * ofDays([0, 6]),
    'spending on a weekday is more than twice that on a weekend day',
  );
  const validity = new Set(postings.map(({ posting }) => posting.terms?.plan.validityDays));
  assert.deepEqual([...validity].sort(), [14, 180, 30, 365, 90, undefined]);
});

test('the demo account has refunds, and open, captured, released and lapsed holds', async () => {
  const idsOf = (kind: Posting['kind']) =>
    new Set(postings.filter(({ posting }) => posting.kind === kind).map(({ posting }) => posting.transactionId)).size;
  const [holds, captures, releases, lapses] = [idsOf('hold'), idsOf('capture'), idsOf('release'), idsOf('lapse')];
  assert(captures > 200 && releases > 10 && lapses > 5 && idsOf('refund') > 5);
  const open = holds - captures - releases - lapses;
  assert(open > 2 && open < 40, `${open} holds are open`);
});

test('in the demo account, some subtractions are refused and create no postings', async () => {
  const requests = demoHistory(1, 1, NOON).filter(({ command }) => command.kind === 'subtract').length;
  const subtractions = new Set(
    postings.filter(({ posting }) => posting.kind === 'subtract').map(({ posting }) => posting.transactionId),
  );
  assert(subtractions.size > requests / 2 && subtractions.size < requests, `${subtractions.size} of ${requests}`);
});

test('the same seed creates the same demo account, and a different seed creates a different account', async () => {
  assert.deepEqual(await postingsOf(madeWith(1)), postings);
  assert.notDeepEqual((await postingsOf(madeWith(2)))[0], postings[0]);
});

const KEY_AND_LINK = /^ {2}\S+(\/console\/join\/\S+)\n[\s\S]*\n(scrip_write_\w+)\n$/m;

describe('scrip demo', options, () => {
  const places = [
    ['a new database', () => server.createDatabase()],
    ['a new file', async () => `file:${temporaryFile()}`],
  ] as const;
  // `npm test` runs this test only on PostgreSQL, because test-clock.test.ts runs `scrip demo` on a ledger file.
  for (const [what, newUrl] of places.slice(0, effort(1, 2))) {
    test(`scrip demo creates a ledger in ${what}, prints a working API key and console link, and refuses to run again`, async (t) => {
      const environment: Environment = { DATABASE_URL: await newUrl(), DATABASE_ACCEPT_UNSAFE: 'yes' };
      const { code, stdout, stderr } = await scrip(['demo', '--seed', '3'], environment);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^Created the account "demo" with 200 end users and \d+ postings over 61 days\.\n/);
      assert.match(stdout, /^ {2}scrip serve {4}\(in a clone of the repository: npm start\)$/m);
      const [, link, secret] = KEY_AND_LINK.exec(stdout) ?? [];
      assert(link && secret, stdout);
      assert.deepEqual(problemsOf(await auditAt(environment.DATABASE_URL as string)), []);
      const { url } = await serveHere(t, environment);
      assert.equal((await add(url, secret)).status, 200, "the ledger's time is not ahead of the machine's time");
      assert.equal((await fetch(`${url}${link}`)).status, 200);
      assert.match(
        (await scrip(['demo'], environment)).stderr,
        /is in use by another Scrip process|There is already a ledger at/,
      );
    });
  }

  test('scrip demo fails if the ledger has an API key, the folder of the ledger is missing, or the seed is invalid', async () => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
    await assertOneLine(['demo'], ledgerAt(file), /There is already a ledger at/);
    const missing = join(temporaryFolder(), 'mount', 'scrip.db');
    await assertOneLine(['demo'], ledgerAt(missing), /^The folder .* does not exist/);
    await assertOneLine(
      ['demo', '--seed', 'x'],
      ledgerAt(temporaryFile()),
      /Must be a whole number from 0 to 4294967295/,
    );
  });
});
