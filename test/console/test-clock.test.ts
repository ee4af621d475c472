// Tests that every page of the console has a banner if the ledger has a test clock, and that forms move the clock
// without JavaScript.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { testClockPage } from '../../src/console/pages/test-clock.ts';
import { PERMISSIONS } from '../../src/console/permissions.ts';
import { DAY_MS, INSTANT_MAX } from '../../src/ledger/instant.ts';
import { effort } from '../effort.ts';
import { type Reply, type Scrip, someone, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../store/postgres/scrip-on-postgres.ts';
import { makeHashesCheap } from './argon2-wrapper.ts';
import { assertGoesTo, decode, newMember, newOwner, Visitor } from './visitor.ts';

makeHashesCheap();

let server: PostgresServer | null = null;
after(() => server?.remove());

async function startOnPostgres(): Promise<Scrip> {
  server = await PostgresServer.start({ fsync: 'off' });
  return startScrip({ testClock: true, database: await newDatabaseOn(server) });
}

function bannerOf({ text }: Reply): string | null {
  return /<strong>Test clock: <time datetime="([^"]+)"/.exec(text)?.[1] ?? null;
}

async function now(scrip: Scrip): Promise<number> {
  return Date.parse((await scrip.get('/test-clock')).body.now);
}

const iso = (instant: number) => new Date(instant).toISOString();

const STORES = [
  ['SQLite', () => startScrip({ testClock: true })],
  // `npm test` omits PostgreSQL, because test/service/test-clock.test.ts tests the clock on both stores.
  ...effort([], [['PostgreSQL', startOnPostgres] as const]),
] as const;

for (const [store, start] of STORES) {
  describe(`the console and the test clock (${store})`, () => {
    let scrip: Scrip;
    let visitor: Visitor;
    before(async () => {
      scrip = await start();
      visitor = await newOwner(scrip);
    });
    after(() => scrip.stop());

    test('every page shows the time of the test clock, whether or not the visitor is signed in', async () => {
      const shown = iso(await now(scrip));
      const pages = Object.keys(PERMISSIONS).flatMap((name) => (/^GET (\/[^:.]*)$/.exec(name) ?? []).slice(1));
      const own = [`/console/end-users/${someone()}`, '/console/nothing', '/console/end-users/no-uuid'];
      let seen = 0;
      for (const path of [...pages, ...own]) {
        for (const one of [visitor, new Visitor(scrip)]) {
          const page = await one.get(path);
          if (page.status === 303) continue;
          assert.equal(bannerOf(page), shown, `${path} ${page.status}`);
          seen += 1;
        }
      }
      assert(seen > 12, `${seen} pages`);
      const signedOut = await new Visitor(scrip).get('/console/sign-in');
      assert(!signedOut.text.includes('/console/test-clock'), 'only members can move the clock');
    });

    test('the form in the banner moves the test clock by a number of days, redirects to the current page, and takes effect only once if it is sent twice', async () => {
      const path = '/console/end-users?list=low-balance&at_most=7';
      const page = await visitor.get(path);
      const [, from = ''] = /name="from" value="(\d+)"/.exec(page.text) ?? [];
      const [, back = ''] = /name="back" value="([^"]+)"/.exec(page.text) ?? [];
      const began = await now(scrip);
      assert.deepEqual([Number(from), decode(back)], [began, path]);
      const fields = { from, back: decode(back), days: '31' };
      for (const _ of ['once', 'twice']) assertGoesTo(await visitor.post('/console/test-clock', fields), path);
      assert.equal(await now(scrip), began + 31 * DAY_MS);
      assert.equal(bannerOf(await visitor.get(path)), iso(began + 31 * DAY_MS));
    });

    test('after the form in the banner has moved the test clock, the page does not repeat an earlier notice', async () => {
      const path = `/console/end-users/${someone()}`;
      const { text } = await visitor.get(`${path}?notice=add`);
      assert.match(text, /Credits added\./);
      assert.equal(/name="back" value="([^"]+)"/.exec(text)?.[1], path);
    });

    test('a form in the banner that was loaded while another user was signed in does not move the test clock', async () => {
      const { text } = await visitor.get('/console/overview');
      const [, user = ''] =
        /<form [^>]+\/test-clock"[^>]*><input type="hidden" name="user" value="([^"]+)">/.exec(text) ?? [];
      assert.equal(text.split('method="post"').length, text.split('name="user"').length, 'every form names the user');
      const member = await newMember(scrip, visitor);
      const began = await now(scrip);
      assert.equal((await member.post('/console/test-clock', { user, days: '1' })).status, 409);
      assert.equal(await now(scrip), began);
      await visitor.post('/console/test-clock', { user, days: '1' });
      assert.equal(await now(scrip), began + DAY_MS);
    });

    test('if the clock has moved since the page was loaded, the form does not move it, and says so', async () => {
      const from = await now(scrip);
      await scrip.post('/test-clock', { advance_days: 2 });
      for (const days of ['1', '3']) {
        const { text } = await visitor.post('/console/test-clock', { from: String(from), days });
        assert.match(text, /Nothing was changed, because the clock has moved since this page was loaded/);
      }
      assert.equal(await now(scrip), from + 2 * DAY_MS);
    });

    test('the form on the test clock page moves the clock to the entered date and time', async () => {
      const began = await now(scrip);
      const to = iso(began + 40 * DAY_MS).slice(0, 16);
      const path = '/console/test-clock?notice=moved';
      assertGoesTo(await visitor.post('/console/test-clock', { to }), path);
      assert.equal(await now(scrip), Date.parse(`${to}:00Z`));
      assert.match((await visitor.get(path)).text, /Test clock moved\./);
    });

    test('if the entered number of days, or the entered time, is invalid, the form shows an error next to the field and does not move the test clock', async () => {
      const began = await now(scrip);
      for (const [fields, reason] of [
        [{ days: '' }, 'Enter a whole number of days'],
        [{ days: '0' }, 'Enter at least 1 day.'],
        [{ days: '-3' }, 'Enter the number without a sign.'],
        [{ days: '99999999' }, 'can only move forward'],
        [{ to: iso(began - DAY_MS).slice(0, 16) }, 'can only move forward'],
        [{ to: 'tomorrow' }, 'Enter a date and a time'],
        [{ to: '' }, 'Enter a date and a time'],
      ] as const) {
        const { status, text } = await visitor.post('/console/test-clock', fields);
        assert.equal(status, 200);
        assert(decode(text).includes(reason), `${JSON.stringify(fields)}: ${decode(text)}`);
      }
      assert.equal(await now(scrip), began);
    });

    test('the form that moves the test clock never redirects to another website', async () => {
      for (const back of [
        'https://example.com/',
        '//example.com',
        '/\\example.com',
        'javascript:alert(1)',
        '/console/test-clock',
      ]) {
        const reply = await visitor.post('/console/test-clock', { days: '1', back });
        assertGoesTo(reply, '/console/test-clock?notice=moved');
      }
    });

    test('members can move the test clock, and visitors who are not signed in cannot', async () => {
      const member = await newMember(scrip, visitor);
      const began = await now(scrip);
      assertGoesTo(
        await new Visitor(scrip).post('/console/test-clock', { days: '1' }),
        '/console/sign-in?notice=session-ended',
      );
      assert.equal(await now(scrip), began);
      await member.post('/console/test-clock', { days: '1' });
      assert.equal(await now(scrip), began + DAY_MS);
    });

    test('balances and the overview use the time of the test clock, and sessions and invitations use the real time', async () => {
      await scrip.post('/test-clock', { advance_days: 3_000 });
      assert(await visitor.isSignedIn());
      await newMember(scrip, visitor);
      const endUser = someone();
      await visitor.post(`/console/end-users/${endUser}/add`, {
        amount: '40',
        validity: '10',
        unit: 'days',
        idempotency_key: someone(),
      });
      const page = async () => (await visitor.get(`/console/end-users/${endUser}`)).text;
      assert.match(await page(), /large-number">40</);
      await scrip.post('/test-clock', { advance_days: 10 });
      assert.match(await page(), /large-number">0</);
      const overview = await visitor.get('/console/overview?period=12m');
      assert.equal(overview.status, 200);
      const year = String(new Date(await now(scrip)).getUTCFullYear());
      assert(overview.text.includes(year), 'the chart ends in the year of the test clock');
    });
  });
}

test('without a test clock, the console has no banner and no page to move the clock', async () => {
  const scrip = await startScrip();
  try {
    const visitor = await newOwner(scrip);
    assert.equal(bannerOf(await visitor.get('/console/overview')), null);
    assert.doesNotMatch((await visitor.get('/console/overview')).text, /test-clock/);
    for (const reply of [
      await visitor.get('/console/test-clock'),
      await visitor.post('/console/test-clock', { days: '1' }),
    ])
      assert.equal(reply.status, 404);
  } finally {
    await scrip.stop();
  }
});

test('on the last day of the ledger, the test clock page suggests a date that browsers accept', () => {
  const text = testClockPage({ now: INSTANT_MAX - DAY_MS + 1, refused: null }, { viewer: null, notice: null });
  assert.match(text, /type="datetime-local" value="9999-12-31T23:59"/);
});
