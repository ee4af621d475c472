// Tests the console in a real browser: everyday tasks, the appearance of pages, use with the keyboard, and use without
// JavaScript.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import type { Database } from '../../../src/config.ts';
import { effort } from '../../effort.ts';
import { eventually, type Scrip, startScrip } from '../../http/running-service.ts';
import { PostgresServer } from '../../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../../store/postgres/scrip-on-postgres.ts';
import { makeHashesCheap } from '../argon2-wrapper.ts';
import { assertSound, launchBrowser, PHONE, type Rules } from './browser.ts';
import { ConsoleVisitor, callApi, type Person } from './console-visitor.ts';

makeHashesCheap();

interface StoreUnderTest {
  readonly name: string;
  open(): Promise<Database | undefined>;
  close(): Promise<void>;
}

let server: PostgresServer | null = null;

const SQLITE: StoreUnderTest = { name: 'SQLite', open: async () => undefined, close: async () => {} };

const POSTGRES: StoreUnderTest = {
  name: 'PostgreSQL',
  async open() {
    server = await PostgresServer.start({ fsync: 'off' });
    return newDatabaseOn(server, { lanes: 2, citus: false });
  },
  async close() {
    await server?.remove();
  },
};

let browser: Browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** A revoked key must stop working within a second. This limit leaves room for slow machines. */
const REVOKED_WITHIN_MS = 5_000;

/** axe skips closed sections. */
const OPEN_DETAILS = "for (const one of document.querySelectorAll('details')) one.open = true";

// Both stores give the browser the same pages, so `npm test` uses only SQLite.
for (const store of effort([SQLITE], [SQLITE, POSTGRES])) {
  describe(`the console in a browser (${store.name})`, () => {
    const { arrive, url } = consoleOn(store);
    const person = newPerson();
    let visitor: ConsoleVisitor;
    let secret: string;
    before(async () => {
      visitor = await arrive();
      await visitor.signUp(person);
      secret = await visitor.createKey('Backend');
    });
    after(() => visitor.leave());

    test('a user signs up, creates an API key, finds credits that were added with the key, adjusts them, revokes the key and signs out', async () => {
      const visitor = await arrive();
      const person = newPerson();
      await visitor.signUp(person);
      const secret = await visitor.createKey('Backend');
      await visitor.page.getByRole('button', { name: 'Copy' }).waitFor();
      const endUser = randomUUID();
      assert.equal(await callApi(url(), secret, '/add', { end_user_id: endUser, amount: 1_234 }), 200);

      await visitor.follow('Overview');
      await eventually(async () => {
        // The overview shows a write after about a second.
        await visitor.page.waitForTimeout(300);
        await visitor.page.reload();
        const text = await visitor.text();
        return text.includes('1,234') && text.includes(endUser);
      }, 'the overview shows the credits');

      await visitor.follow('End users');
      await visitor.fill('Search by UUID', endUser.slice(0, 8));
      await visitor.press('Search');
      await visitor.follow(endUser);
      assert.match(await visitor.text(), /Current balance\s+1,234 credits[\s\S]*Backend/);

      await visitor.page.getByText('Subtract credits').click();
      await visitor.fill('Amount', '2000');
      await visitor.press('Subtract');
      assert.match(await visitor.text(), /The balance is 1,234 credits, less than the 2,000 requested/);
      await visitor.fill('Amount', '34');
      await visitor.fill('Note', 'Counted twice, ticket 4711');
      await visitor.press('Subtract');
      const adjusted = await visitor.text();
      assert.match(adjusted, /Credits subtracted\.[\s\S]*1,200 credits/);
      assert.match(adjusted, /−34[\s\S]*Counted twice, ticket 4711/);
      assert(adjusted.includes(person.email), 'the history shows the user');

      await visitor.follow('API keys');
      assert(!(await visitor.page.content()).includes(secret), 'the secret is shown only once');
      await visitor.follow('Revoke');
      await visitor.press('Revoke key');
      await visitor.page.getByText('Key revoked').waitFor();
      await eventually(
        async () => (await callApi(url(), secret, '/add', { end_user_id: endUser, amount: 1 })) === 401,
        'the revoked key is refused',
        REVOKED_WITHIN_MS,
      );

      await visitor.signOut();
      await visitor.open('/console/overview');
      assert.match(visitor.page.url(), /\/console\/sign-in/);
      await visitor.leave();
    });

    test('a user releases a hold and refunds part of a subtraction, both with a note', async () => {
      const endUser = randomUUID();
      for (const [path, fields] of [
        ['/add', { amount: 100 }],
        ['/subtract', { amount: 30, note: 'Render 8790' }],
        ['/hold', { amount: 40, note: 'Render 8812' }],
      ] as const)
        assert.equal(await callApi(url(), secret, path, { end_user_id: endUser, ...fields }), 200, path);
      await visitor.open(`/console/end-users/${endUser}`);
      const held = /30 credits\s+40 more held[\s\S]*Holds[\s\S]*15 minutes left[\s\S]*“Render 8812”/;
      assert.match(await visitor.text(), held);

      await followInHistory(visitor, 'Release');
      await visitor.fill('Note', 'Canceled by the user');
      await visitor.press('Release hold');
      const released = await visitor.text();
      assert.match(released, /Hold released: 40 credits returned\.[\s\S]*70 credits/);
      assert.match(released, /Hold released[\s\S]*40 released[\s\S]*“Canceled by the user”/);
      assert.doesNotMatch(released, /more held/);

      await followInHistory(visitor, 'Refund');
      await visitor.fill('Amount', '31');
      await visitor.press('Refund');
      assert.match(
        await visitor.text(),
        /Only 30 credits of this transaction can still be refunded, less than the 31 requested/,
      );
      await visitor.fill('Amount', '12');
      await visitor.fill('Note', 'Ticket 4711');
      await visitor.press('Refund');
      const refunded = await visitor.text();
      assert.match(refunded, /12 credits restored\.[\s\S]*82 credits[\s\S]*\+12[\s\S]*Refund of[\s\S]*“Ticket 4711”/);
      assert(refunded.includes(person.email), 'the history shows the user');

      await visitor.fill('Note begins with', 'Render');
      await visitor.press('Filter');
      const filtered = await visitor.text();
      assert.match(filtered, /Render 8812[\s\S]*Render 8790/);
      assert.doesNotMatch(filtered, /Ticket 4711/);
    });

    test('a user previews and schedules a change of plan, and then cancels the change by stopping the cycle', async () => {
      const endUser = randomUUID();
      const cycle = { end_user_id: endUser, amount: 1_000, validity_months: 1, rollover_max: 500 };
      assert.equal(await callApi(url(), secret, '/start-cycle', cycle), 200);
      await visitor.open(`/console/end-users/${endUser}`);
      assert.match(
        await visitor.text(),
        /1,000 credits every month\.[\s\S]*The cycle renews with 1,000 plus up to 500 unused credits on/,
      );

      await visitor.page.getByText('Change the plan').click();
      await visitor.fill('Amount', '200');
      await visitor.fill('Renews every', '2');
      await visitor.fill('Maximum unused credits to roll over', '');
      await visitor.page.getByLabel('Starts').selectOption('When the period ends');
      await visitor.fill('Note', 'Ticket 4733');
      await visitor.press('Preview change');
      const preview = await visitor.text();
      assert.match(preview, /New plan\s+200 credits every 2 months\s+Starts[\s\S]*Balance after you confirm\s+1,000/);
      assert.match(
        preview,
        /Balance when the plan starts\s+200 credits[\s\S]*Expires when the plan starts\s+1,000 credits/,
      );
      await visitor.press('Schedule change');
      const scheduled = await visitor.text();
      assert.match(scheduled, /Change of plan scheduled for[\s\S]*the plan changes to 200 credits every 2 months\./);
      assert.match(scheduled, /Plan scheduled[\s\S]*“Ticket 4733”/);
      await visitor.page.getByRole('link', { name: /^Scheduled on/ }).click();
      await visitor.page.waitForURL(/\/transactions\//);
      await assertSound(visitor.visited, 'the page of a scheduled change of plan');
      await visitor.page.goBack();

      await visitor.page.getByText('Stop the cycle').first().click();
      assert.match(await visitor.text(), /This also cancels the scheduled change to 200 credits every 2 months\./);
      await visitor.press('Stop cycle');
      const stopped = await visitor.text();
      assert.match(stopped, /Recurring, stopped/);
      assert.doesNotMatch(stopped, /[Cc]hanges to 200/);
    });

    test('a double click on the button that creates an API key creates one key and shows its secret', async () => {
      await visitor.follow('API keys');
      await visitor.fill('Name', 'Clicked twice');
      await visitor.page.getByRole('button', { name: 'Create key', exact: true }).dblclick();
      assert.match(await visitor.page.locator('#secret').innerText(), /^scrip_write_/);
      await visitor.follow('API keys');
      assert.equal(await visitor.page.locator('.strong', { hasText: 'Clicked twice' }).count(), 1);
    });

    test('an owner invites a member by link, and removes the member after a confirmation', async () => {
      const guest = await arrive(PHONE);
      const bob = newPerson();
      await visitor.follow('Members');
      await visitor.press('Create invitation link');
      const link = await visitor.page.locator('#invitation').innerText();
      await guest.page.goto(link);
      await guest.fill('Email', bob.email);
      await guest.fill('Password', 'seven green bottles on a wall');
      await guest.press('Join');
      await guest.page.waitForURL(/\/console\/overview/);
      await visitor.follow('Members');
      await visitor.page
        .getByRole('row', { name: bob.email })
        .getByRole('link', { name: 'Remove', exact: true })
        .click();
      assert.match(await visitor.text(), new RegExp(`Remove ${bob.email}\\?`));
      await visitor.press('Remove member');
      assert.match(await visitor.text(), /Member removed/);
      await guest.open('/console/overview');
      assert.match(guest.page.url(), /\/console\/sign-in/);
      await guest.leave();
    });
  });
}

describe('pages of the console in a browser', () => {
  const { arrive, url } = consoleOn(SQLITE);

  // test/console/look.test.ts checks the same pages and their colors with sample data, on narrow and wide screens.
  for (const [display, options] of [
    ...effort([], [['on a wide screen', {}] as const]),
    ['on a phone', PHONE] as const,
  ]) {
    test(`${display}, every page of a new account is accessible and fits the screen`, async () => {
      const visitor = await arrive(options);
      const check = (what: string, rules = effort<Rules>('structure', 'all')) =>
        assertSound(visitor.visited, `${what} ${display}`, rules);
      const person = newPerson();
      for (const path of ['/console/sign-in', '/console/sign-up']) {
        await visitor.open(path);
        await check(path);
      }
      await visitor.signUp(person);
      await check('the empty overview');
      const secret = await visitor.createKey('Backend');
      await check('the new key');
      const endUser = randomUUID();
      await callApi(url(), secret, '/start-cycle', { end_user_id: endUser, amount: 1_000 });
      await callApi(url(), secret, '/subtract', { end_user_id: endUser, amount: 17 });
      await callApi(url(), secret, '/hold', { end_user_id: endUser, amount: 25, note: 'Render 8812' });
      for (const path of [
        '/console/overview',
        '/console/end-users',
        `/console/end-users/${endUser}`,
        '/console/api-keys',
        '/console/webhooks',
        '/console/members',
        '/console/account',
      ]) {
        await visitor.open(path);
        await check(path);
      }
      for (const colorScheme of ['light', 'dark'] as const) {
        await visitor.page.emulateMedia({ colorScheme });
        await visitor.open('/docs');
        await visitor.page.evaluate(OPEN_DETAILS);
        await check(`/docs in ${colorScheme} mode`, colorScheme === 'light' ? 'all' : 'colors');
      }
      await visitor.page.emulateMedia({ colorScheme: null });
      for (const button of ['Release', 'Refund']) {
        await visitor.open(`/console/end-users/${endUser}`);
        await followInHistory(visitor, button);
        await check(`the page with the form ${button}`);
      }
      await visitor.open('/console/api-keys');
      await visitor.follow('Revoke');
      await check('the confirmation before a key is revoked');
      await visitor.leave();
    });
  }

  test('a user signs in and adds credits using only the keyboard', async () => {
    const visitor = await arrive();
    const person = newPerson();
    await visitor.signUp(person);
    await visitor.signOut();
    const { keyboard } = visitor.page;
    await tabTo(visitor, 'Email');
    await keyboard.type(person.email);
    await tabTo(visitor, 'Password');
    await keyboard.type('seven green bottles on a wall');
    await keyboard.press('Enter');
    await visitor.page.waitForURL(/\/console\/overview/);
    await tabTo(visitor, 'End users');
    await keyboard.press('Enter');
    await visitor.page.waitForURL(/\/console\/end-users/);
    await tabTo(visitor, 'Search by UUID');
    await keyboard.type(randomUUID());
    await keyboard.press('Enter');
    await visitor.page.getByText('Current balance').waitFor();
    await tabTo(visitor, 'Add credits');
    await keyboard.press('Enter');
    await tabTo(visitor, 'Amount');
    await keyboard.type('75');
    await tabTo(visitor, 'Note');
    await keyboard.type('Without a mouse');
    await tabTo(visitor, 'Add');
    await keyboard.press('Enter');
    await visitor.page.getByText('Credits added.').waitFor();
    assert.match(await visitor.text(), /75 credits[\s\S]*Without a mouse/);
    await visitor.leave();
  });

  test('without JavaScript, a user creates an API key and starts, changes and stops a cycle', async () => {
    const visitor = await arrive({ javaScriptEnabled: false });
    const person = newPerson();
    await visitor.signUp(person);
    const secret = await visitor.createKey('Backend');
    const endUser = randomUUID();
    assert.equal(await callApi(url(), secret, '/add', { end_user_id: endUser, amount: 10 }), 200);
    await visitor.open(`/console/end-users/${endUser}`);
    await visitor.page.getByText('Start a cycle').click();
    await visitor.fill('Amount', '1000');
    await visitor.press('Start cycle');
    assert.match(await visitor.text(), /1,010 credits[\s\S]*The cycle renews with 1,000/);
    await visitor.page.getByText('Change the plan').click();
    await visitor.fill('Amount', '2000');
    await visitor.page.getByLabel('Starts').selectOption('Now');
    await visitor.press('Preview change');
    await visitor.press('Change plan');
    assert.match(await visitor.text(), /3,010 credits[\s\S]*2,000 credits every 31 days/);
    await visitor.page.getByText('Stop the cycle').first().click();
    await visitor.press('Stop cycle');
    assert.match(await visitor.text(), /Cycle stopped[\s\S]*3,010 credits[\s\S]*Recurring, stopped/);
    await visitor.leave();
  });
});

function consoleOn(store: StoreUnderTest) {
  let scrip: Scrip;
  before(async () => {
    const database = await store.open();
    scrip = await startScrip(database ? { database } : {});
  });
  after(async () => {
    await scrip?.stop();
    await store.close();
  });
  const url = () => scrip.url;
  return { url, arrive: (options = {}) => ConsoleVisitor.arrive(browser, url(), options) };
}

function newPerson(): Person {
  const id = randomUUID();
  return { email: `${id}@example.com`, accountName: `Account ${id.slice(0, 8)}` };
}

async function followInHistory({ page }: ConsoleVisitor, name: string): Promise<void> {
  await page.locator('.history').getByRole('link', { name, exact: true }).first().click();
  await page.waitForURL(/\/transactions\//);
}

const TABS_MAX = 60;

async function tabTo({ page }: ConsoleVisitor, name: string): Promise<void> {
  for (let pressed = 0; pressed < TABS_MAX; pressed++) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(
      "(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim().replace(/\\s*\\(optional\\)$/, '')",
    );
    if (focused === name) return;
  }
  assert.fail(`${name} cannot be reached with the Tab key`);
}
