// Takes the screenshots in this folder: fills a ledger with `scrip demo`, serves the ledger, joins the account as its
// owner, and captures pages of the console.
//
//   npm run screenshots

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { launchBrowser, PHONE } from '../../test/console/browser/browser.ts';
import { ConsoleVisitor, PASSWORD } from '../../test/console/browser/console-visitor.ts';
import { type Scrip, startScrip } from '../../test/http/running-service.ts';

const OWNER = { email: 'ada@lumen.example' };
const DESKTOP: BrowserContextOptions = { viewport: { width: 1440, height: 1080 }, deviceScaleFactor: 1.35 };

const folder = import.meta.dirname;
const temporary = await mkdtemp(join(tmpdir(), 'scrip-screenshots-'));
const file = join(temporary, 'ledger.db');
const { key, joinPath } = await fillLedger(file);
const scrip = await startScrip({ file });
const browser = await launchBrowser();
try {
  await becomeOwner(browser, scrip, joinPath);
  await takeAll(browser, scrip, await endUserToShow(browser, scrip, key));
} finally {
  await browser.close();
  await scrip.stop();
  await rm(temporary, { recursive: true, force: true });
}

/** @returns an API key of the account, and the path of the invitation link for its owner */
async function fillLedger(path: string): Promise<{ key: string; joinPath: string }> {
  const env = { ...process.env, DATABASE_URL: `file:${path}` };
  const { stdout } = await promisify(execFile)(process.execPath, ['src/main.ts', 'demo'], { env });
  const [key] = /^scrip_write_\w+$/m.exec(stdout) ?? [];
  const [joinPath] = /\/console\/join\/\S+/.exec(stdout) ?? [];
  if (key === undefined || joinPath === undefined) throw new Error(`unexpected output of \`scrip demo\`: ${stdout}`);
  return { key, joinPath };
}

async function becomeOwner(browser: Browser, { url }: Scrip, joinPath: string): Promise<void> {
  const visitor = await ConsoleVisitor.arrive(browser, url);
  await visitor.open(joinPath);
  await visitor.fill('Email', OWNER.email);
  await visitor.fill('Password', PASSWORD);
  await visitor.press('Join');
  await visitor.page.waitForURL(/\/console\/overview/);
  await visitor.createKey('Staging');
  await visitor.createKey('First prototype');
  await visitor.follow('API keys');
  await visitor.follow('Revoke');
  await visitor.press('Revoke key');
  await visitor.leave();
}

/** Returns the ID of an end user: among the most recently active end users, the one with the most cycles. */
async function endUserToShow(browser: Browser, scrip: Scrip, key: string): Promise<string> {
  const visitor = await ConsoleVisitor.arrive(browser, scrip.url, DESKTOP);
  await visitor.signIn(OWNER);
  await visitor.open('/console/end-users');
  const links = await visitor.page
    .locator('a[href^="/console/end-users/"]')
    .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
  await visitor.leave();
  const endUsers = [...new Set(links.map((link) => link.split('/').at(-1) ?? ''))].filter((id) => id.length === 36);
  let found = { endUser: endUsers[0] as string, cycles: 0 };
  for (const endUser of endUsers) {
    const { body } = await scrip.get('/get-active-balance', { end_user_id: endUser }, { key });
    const cycles = body.active_balance_by_cycle.length;
    if (cycles > found.cycles) found = { endUser, cycles };
  }
  return found.endUser;
}

async function takeAll(browser: Browser, scrip: Scrip, endUser: string): Promise<void> {
  await take(browser, scrip, { ...DESKTOP, colorScheme: 'light' }, [
    ['overview-light', '/console/overview'],
    ['end-user', `/console/end-users/${endUser}`],
    ['end-users', '/console/end-users'],
    ['api-keys', '/console/api-keys'],
  ]);
  await take(browser, scrip, { ...DESKTOP, colorScheme: 'dark' }, [
    ['overview-dark', '/console/overview'],
    ['end-user-dark', `/console/end-users/${endUser}`],
  ]);
  await take(browser, scrip, { ...PHONE, deviceScaleFactor: 2 }, [['phone', `/console/end-users/${endUser}`]]);
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
