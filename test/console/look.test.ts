// Every page in a real browser, in light, in dark and on a phone: nothing that axe finds, nothing that the browser logs,
// nothing wider than the screen, nothing inline, and all of it by keyboard.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { assertSound, launchBrowser, PHONE, type Visit, visit } from '../browser/browser.ts';
import { SAMPLE_PAGES, type SampleServer, serveSamplePages } from './sample-pages.ts';
import { SECRET } from './sample-views.ts';

let browser: Browser;
let server: SampleServer;

before(async () => {
  server = await serveSamplePages();
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  server?.close();
});

const DESK = { viewport: { width: 1280, height: 900 } };
const NARROW_DESK = { viewport: { width: 800, height: 700 } };

const LOOKS = [
  ['in light', { ...DESK, colorScheme: 'light' }, 'all'],
  ['in dark', { ...DESK, colorScheme: 'dark' }, 'colours'],
  ['in a narrow window', { ...NARROW_DESK, colorScheme: 'light' }, 'colours'],
  ['on a phone', { ...PHONE, colorScheme: 'light' }, 'all'],
] as const;

for (const [look, options, rules] of LOOKS) {
  test(`every page is sound ${look}`, async () => {
    const seen = await visit(browser, options);
    for (const name of Object.keys(SAMPLE_PAGES)) {
      await open(seen, name);
      // What is folded away has to be sound as well.
      await seen.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.removeAttribute('name'); one.open = true; })",
      );
      await assertSound(seen, `${name} ${look}`, rules);
    }
    await seen.close();
  });
}

async function open({ page }: Visit, name: string): Promise<void> {
  await page.goto(`${server.url}/${name}`);
}

test('no page has an inline style, an inline script, or anything of another origin', () => {
  for (const [name, text] of Object.entries(SAMPLE_PAGES)) {
    assert.doesNotMatch(text, /\sstyle=|<style|\son[a-z]+=|javascript:|<script(?! src="\/console\/assets\/)/, name);
    for (const [, url = ''] of text.matchAll(/(?:src|href|action)="([^"]*)"/g))
      assert.match(url, /^(?:\/console\/|#)/, `${name} names ${url}`);
  }
});

test('each page has one heading of the first rank, and each label its field', () => {
  for (const [name, text] of Object.entries(SAMPLE_PAGES)) {
    assert.equal(text.match(/<h1/g)?.length, 1, `${name} has one h1`);
    const ids = [...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, `the ids of ${name} are unique`);
    for (const [, id] of text.matchAll(/<label for="([^"]+)"/g))
      assert(ids.includes(id), `${name} has the field ${id}`);
  }
});

test('by keyboard alone: the first Tab leads past the navigation, the focus is seen, a form opens and closes', async () => {
  const seen = await visit(browser, DESK);
  const { page } = seen;
  await open(seen, 'end-user');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content');
  assert(
    ((await page.evaluate('document.activeElement.getBoundingClientRect().top')) as number) >= 0,
    'it can be seen',
  );
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Back to the list');
  const outlines: unknown[] = [];
  for (let pressed = 0; pressed < 60; pressed++) {
    await page.keyboard.press('Tab');
    outlines.push(
      await page.evaluate(
        "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'",
      ),
    );
  }
  assert(outlines.every(Boolean), 'whatever has the focus shows it');
  await page.getByText('Add credits').focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.type('50');
  assert.equal(await page.getByLabel('Amount').first().inputValue(), '50');
  await seen.close();
});

test('a secret is copied by its button, which is not there without JavaScript', async () => {
  const seen = await visit(browser, { ...DESK, permissions: ['clipboard-read', 'clipboard-write'] });
  await open(seen, 'key-created');
  await seen.page.getByRole('button', { name: 'Copy' }).click();
  await seen.page.getByText('Copied.').waitFor();
  assert.equal(await seen.page.evaluate('navigator.clipboard.readText()'), SECRET);
  await seen.close();

  const plain = await visit(browser, { ...DESK, javaScriptEnabled: false });
  await open(plain, 'key-created');
  assert.equal(await plain.page.getByRole('button', { name: 'Copy' }).count(), 0);
  assert.equal(await plain.page.locator('#secret').innerText(), SECRET);
  await plain.close();
});

test('times are UTC, and whoever points at one is told what it is where they are', async () => {
  const seen = await visit(browser, { ...DESK, timezoneId: 'Asia/Tokyo', locale: 'en-GB' });
  await open(seen, 'end-user');
  const now = seen.page.getByLabel('Balance now').locator('time');
  assert.equal(await now.innerText(), '20 Nov 2026, 14:05:31 UTC');
  assert.equal(await now.getAttribute('title'), '20 Nov 2026, 23:05:31 GMT+9');
  await seen.close();
});

test('without JavaScript a form of the end user opens, and another one closes it', async () => {
  const seen = await visit(browser, { ...DESK, javaScriptEnabled: false });
  await open(seen, 'end-user');
  const amounts = seen.page.getByLabel('Amount');
  await seen.page.getByText('Add credits').click();
  assert.equal(await amounts.first().isVisible(), true);
  await seen.page.getByText('Subtract credits').click();
  assert.equal(await amounts.first().isVisible(), false);
  await seen.close();
});

test('on paper there is the content and nothing to press', async () => {
  const seen = await visit(browser, DESK);
  await open(seen, 'end-user');
  await seen.page.emulateMedia({ media: 'print' });
  assert.equal(await seen.page.getByRole('button').count(), 0);
  assert.equal(await seen.page.getByRole('heading', { name: 'Transactions' }).isVisible(), true);
  await seen.close();
});
