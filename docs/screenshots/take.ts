// Takes the screenshots of the console in this folder: starts Scrip with a test clock and a ledger of its own, lets an
// example business sell credits through the API for 47 days, and captures the pages of the console.
//
//   npm run screenshots

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { launchBrowser, PHONE } from '../../test/console/browser/browser.ts';
import { ConsoleVisitor } from '../../test/console/browser/console-visitor.ts';
import { MovableClock, type Scrip, startScrip } from '../../test/http/running-service.ts';

const DAY_MS = 86_400_000;
/** Longer than the interval of the renewal job. */
const SETTLE_MS = 1_100;
/** How often the renewal job gets time to run, which is in real time. */
const DAYS_BETWEEN_TICKS = 4;
const DAYS = 47;
const END_USERS = 40;
const BEGIN = '2026-10-04T08:12:41.307Z';
const OWNER = { email: 'ada@lumen.example', accountName: 'Lumen Pictures' };
const DESKTOP: BrowserContextOptions = { viewport: { width: 1440, height: 1080 }, deviceScaleFactor: 1.35 };

const folder = import.meta.dirname;
const temporary = await mkdtemp(join(tmpdir(), 'scrip-screenshots-'));
const clock = new MovableClock(BEGIN);
const start = () => startScrip({ clock, file: join(temporary, 'ledger.db') });
let scrip = await start();
const browser = await launchBrowser();
try {
  const secret = await signUpAndMakeKeys(browser, scrip);
  await sellCredits(scrip, secret);
  // The last use of a key is stored once a minute of real time; after a restart, with the next request.
  await scrip.stop();
  scrip = await start();
  await scrip.post('/subtract', { end_user_id: endUserAt(0), amount: 1 }, { key: secret });
  await sleep(2 * SETTLE_MS);
  await takeAll(browser, scrip, secret);
} finally {
  await browser.close();
  await scrip.stop();
  await rm(temporary, { recursive: true, force: true });
}

async function signUpAndMakeKeys(browser: Browser, { url }: Scrip): Promise<string> {
  const visitor = await ConsoleVisitor.arrive(browser, url);
  await visitor.signUp(OWNER);
  await visitor.signIn(OWNER);
  await visitor.createKey('Staging');
  await visitor.createKey('First prototype');
  await visitor.follow('API keys');
  await visitor.follow('Revoke');
  await visitor.press('Revoke key');
  const secret = await visitor.createKey('Production backend');
  await visitor.leave();
  return secret;
}

/** Pseudo-random numbers from 0 to 1, the same in every run. */
function randomNumbers(): () => number {
  let state = 20_261_120;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function endUserAt(index: number): string {
  return `${(index * 0x9e3779b1 + 0x5f2b1c9e).toString(16).slice(-8).padStart(8, '0')}-3a70-4d2e-9b61-0c8f4e7a1d23`;
}

async function sellCredits(scrip: Scrip, key: string): Promise<void> {
  const random = randomNumbers();
  const call = (path: string, fields: object) => scrip.post(path, fields, { key });
  const begin = Date.parse(BEGIN);
  for (let day = 0; day < DAYS; day++) {
    const isWeekend = day % 7 >= 5;
    const customers = Math.min(END_USERS, 7 + Math.floor(day * 0.8));
    for (let index = 0; index < customers; index++) {
      clock.set(begin + Math.round((day + (index + random()) / (customers + 1)) * DAY_MS));
      const end_user_id = endUserAt(index);
      if (random() < 0.06) await call('/start-cycle', { end_user_id, amount: 1_000 });
      if (random() < 0.09)
        await call('/add', { end_user_id, amount: 250 + Math.floor(random() * 4) * 250, validity_days: 14 });
      if (random() < (isWeekend ? 0.35 : 0.8))
        await call('/subtract', { end_user_id, amount: 20 + Math.floor(random() * 160) });
    }
    if (day % DAYS_BETWEEN_TICKS === 0) await sleep(SETTLE_MS);
  }
}

async function takeAll(browser: Browser, scrip: Scrip, key: string): Promise<void> {
  const busy = await busiest(scrip, key);
  await take(browser, scrip, { ...DESKTOP, colorScheme: 'light' }, [
    ['overview-light', '/console/overview'],
    ['end-user', `/console/end-users/${busy}`],
    ['end-users', '/console/end-users'],
    ['api-keys', '/console/api-keys'],
  ]);
  await take(browser, scrip, { ...DESKTOP, colorScheme: 'dark' }, [
    ['overview-dark', '/console/overview'],
    ['end-user-dark', `/console/end-users/${busy}`],
  ]);
  await take(browser, scrip, { ...PHONE, deviceScaleFactor: 2 }, [['phone', `/console/end-users/${busy}`]]);
}

/** The end user with the most cycles. */
async function busiest(scrip: Scrip, key: string): Promise<string> {
  let found = endUserAt(0);
  let most = 0;
  for (let index = 0; index < END_USERS; index++) {
    const { body } = await scrip.get('/get-active-balance', { end_user_id: endUserAt(index) }, { key });
    if (body.active_balance_by_cycle.length <= most) continue;
    most = body.active_balance_by_cycle.length;
    found = endUserAt(index);
  }
  return found;
}

async function take(
  browser: Browser,
  { url }: Scrip,
  options: BrowserContextOptions,
  screenshots: readonly (readonly [name: string, path: string])[],
): Promise<void> {
  const visitor = await ConsoleVisitor.arrive(browser, url, options);
  await visitor.signIn(OWNER);
  for (const [name, path] of screenshots) {
    await visitor.open(path);
    await visitor.page.screenshot({ path: join(folder, `${name}.png`), fullPage: false });
  }
  await visitor.leave();
}
