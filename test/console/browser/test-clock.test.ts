// Tests the banner and the page of the test clock in a real browser, with and without JavaScript.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { effort } from '../../effort.ts';
import { type Scrip, startScrip } from '../../http/running-service.ts';
import { makeHashesCheap } from '../argon2-wrapper.ts';
import { assertSound, launchBrowser, PHONE } from './browser.ts';
import { ConsoleVisitor } from './console-visitor.ts';

makeHashesCheap();

let browser: Browser;
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ testClock: true });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await scrip?.stop();
});

const now = async () => Date.parse((await scrip.get('/test-clock')).body.now);

/** Without reduced motion, button colors change gradually, and axe could measure an intermediate color. */
const SCREENS: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
  ...effort([], [['on a wide screen', { reducedMotion: 'reduce' }] as const]),
  ['on a phone', { ...PHONE, reducedMotion: 'reduce' }],
  ['without JavaScript', { javaScriptEnabled: false }],
];

for (const [name, options] of SCREENS) {
  test(`${name}, console users can move the test clock by a number of days or to a date and time`, async () => {
    const visitor = await ConsoleVisitor.arrive(browser, scrip.url, options);
    const { page, visited } = { page: visitor.page, visited: visitor.visited };
    const isSound = async (what: string) => {
      if (options.javaScriptEnabled === false) return;
      await assertSound(visited, `${what} ${name}`);
      await page.emulateMedia({ colorScheme: 'dark' });
      await assertSound(visited, `${what} ${name} in dark mode`, 'colors');
      await page.emulateMedia({ colorScheme: 'light' });
    };
    await visitor.open('/console/sign-up');
    await isSound('sign-up with the banner');
    await visitor.signUp({ email: `${randomUUID()}@example.com`, accountName: 'Acme' });
    await isSound('the overview with the banner');
    const began = await now();
    await visitor.fill('Days', '31');
    await visitor.press('Advance');
    await page.waitForURL(/\/console\/overview/);
    assert.equal(await now(), began + 31 * DAY_MS);
    await visitor.follow('Move to a date and time');
    await isSound('the page of the test clock');
    await visitor.press('Move');
    await page.waitForURL(/notice=moved/);
    const to = new Date(began + 32 * DAY_MS).toISOString().slice(0, 16);
    assert.equal(await now(), Date.parse(`${to}:00Z`), 'the form suggests the next day');
    await visitor.fill('Days', '0');
    await visitor.press('Advance');
    assert.match(await page.locator('main').innerText(), /Enter at least 1 day\./);
    await isSound('a refused move');
    await visited.close();
  });
}
