// Opens every page with sample data in a real browser, in light and dark mode and on a narrow screen. Every page must
// be accessible and readable, log no error and fit the screen.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { effort } from '../effort.ts';
import { assertFits, assertSound, launchBrowser, type Visit, visit } from './browser/browser.ts';
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

const DESKTOP = { viewport: { width: 1280, height: 900 } };

const NARROW = { width: 320, height: 740 };

/**
 * Opens all sections, because axe skips closed ones. Returns the kinds of elements on the page. The rows of a chart's
 * data table are all alike, so under `npm test` this script keeps only the first 15 rows.
 */
const PREPARE = `(() => {
  for (const one of document.querySelectorAll('details')) {
    one.removeAttribute('name');
    one.open = true;
  }
  for (const row of document.querySelectorAll('.as-table tbody tr:nth-child(n + ${effort(16, 1_000)})')) row.remove();
  const nameOf = (one) => one.localName + '.' + one.getAttribute('class');
  return [...document.querySelectorAll('html *')].map((one) => nameOf(one.parentElement) + ' > ' + nameOf(one));
})()`;

/**
 * Finds words and groups of digits that are broken across lines, text that is cut off, and overlapping texts in a table
 * row. Email addresses, URLs and long words, such as UUIDs, can break anywhere.
 */
const FIND_UNREADABLE_TEXT = `(() => {
  const BREAKS_ANYWHERE = /[@/]|.{26}/;
  const found = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const rectsOf = (node, from, to) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return [...range.getClientRects()].filter(({ width }) => width > 0);
  };
  const drawn = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (parent.closest('.stack thead, .code, .as-table, svg, select') || !parent.checkVisibility()) continue;
    for (const word of node.data.matchAll(/\\S+/g)) {
      if (BREAKS_ANYWHERE.test(word[0])) continue;
      for (const part of word[0].matchAll(/[\\p{L}\\d]+/gu)) {
        const from = word.index + part.index;
        const lines = new Set(rectsOf(node, from, from + part[0].length).map(({ top }) => Math.round(top)));
        if (lines.size > 1) found.push('broken: ' + word[0]);
      }
    }
    const { right } = (parent.closest('.scroll') ?? document.documentElement).getBoundingClientRect();
    const row = parent.closest('tr');
    for (const rect of rectsOf(node, 0, node.data.length)) {
      if (rect.right > right + 1) found.push('cut off: ' + node.data);
      drawn.push({ rect, row, cell: parent.closest('td'), text: node.data });
    }
  }
  for (const [index, a] of drawn.entries()) {
    for (const b of drawn.slice(index + 1)) {
      if (a.row === null || b.row !== a.row) break;
      if (b.cell === a.cell || a.rect.right <= b.rect.left || b.rect.right <= a.rect.left) continue;
      if (a.rect.bottom > b.rect.top + 1 && b.rect.bottom > a.rect.top + 1) found.push('overlap: ' + a.text + ' and ' + b.text);
    }
  }
  return found;
})()`;

describe('pages with sample data', () => {
  let visited: Visit;
  before(async () => {
    // Without reduced motion, button colors change gradually, and axe could measure an intermediate color.
    visited = await visit(browser, { viewport: NARROW, reducedMotion: 'reduce' });
  });
  after(() => visited?.close());
  const seen = new Set<string>();

  // `npm test` runs axe only on pages with a new kind of element. The longest pages come first, because they have the
  // most kinds of elements.
  const pages = Object.entries(SAMPLE_PAGES).toSorted(([, a], [, b]) => b.length - a.length);
  for (const [name] of pages) {
    test(`the ${name} page fits and is readable on a narrow screen, and its elements are accessible on narrow and wide screens, in light and dark mode`, async () => {
      const { page } = visited;
      await open(visited, name);
      assert.deepEqual(await page.evaluate(FIND_UNREADABLE_TEXT), [], `${name} on a narrow screen`);
      const before = seen.size;
      for (const kind of (await page.evaluate(PREPARE)) as string[]) seen.add(kind);
      const hasNewElements = seen.size > before;
      if (!effort(hasNewElements, true)) return assertFits(visited, `${name} on a narrow screen`);
      await assertSound(visited, `${name} on a narrow screen`, effort('structure', 'all'));
      try {
        await page.setViewportSize(DESKTOP.viewport);
        await assertSound(visited, `${name} on a wide screen`);
        await page.emulateMedia({ colorScheme: 'dark' });
        await assertSound(visited, `${name} in dark mode`, 'colors');
      } finally {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.setViewportSize(NARROW);
      }
    });
  }
});

const FIND_WRAPPED_TEXT = `[...document.querySelectorAll('.table.stack td')].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('.note') || !node.data.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
    if (lines.size > 1) found.push(node.data);
    if (cell.scrollWidth > cell.clientWidth + 1) found.push('cut off: ' + node.data);
  }
  return found;
})`;

const FIND_SCROLLING_TABLES =
  "[...document.querySelectorAll('.scroll:has(> .stack)')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)";

/** Text in the tables of these pages is so long that it wraps. */
const WITH_LONG_TEXT = ['end-user-rich', 'webhooks', 'api-keys-long', 'members-long'];
const WITH_SHORT_TEXT = [
  'overview',
  'end-users',
  'end-user',
  'end-user-plan',
  'transaction-subtraction',
  'api-keys',
  'webhook',
  'webhook-paused',
  'thresholds',
  'members',
];

test('at common window widths, no console table scrolls horizontally; on a desktop or a tablet, no short text in a table wraps or is cut off', async () => {
  const visited = await visit(browser, DESKTOP);
  const { page } = visited;
  for (const name of [...WITH_LONG_TEXT, ...WITH_SHORT_TEXT]) {
    await open(visited, name);
    for (const width of [320, 360, 768, 1000, 1100, 1280, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      assert.deepEqual(await page.evaluate(FIND_SCROLLING_TABLES), [], `${name} at ${width} px`);
      if ((width === 768 || width === 1280) && WITH_SHORT_TEXT.includes(name))
        assert.deepEqual(await page.evaluate(FIND_WRAPPED_TEXT), [], `${name} at ${width} px`);
    }
  }
  await visited.close();
});

test('the characters of an account name do not reorder the text around the name', async () => {
  const visited = await visit(browser, DESKTOP);
  for (const name of ['join', 'cannot-join', 'sign-up-first']) {
    await open(visited, name);
    const style = await visited.page.evaluate("getComputedStyle(document.querySelector('main strong')).unicodeBidi");
    assert.equal(style, 'isolate', name);
  }
  await visited.close();
});

const FIND_LABELS =
  "[...document.querySelectorAll('.end-users tbody tr:first-child td')].map((cell) => getComputedStyle(cell, '::before').content)";

test('on a phone, the values in the list of end users have labels, except for the UUID', async () => {
  const visited = await visit(browser, { viewport: NARROW });
  await open(visited, 'end-users');
  const labels = ['none', ...['Balance', 'Next expiry', 'Latest activity'].map((label) => `"${label}"`)];
  assert.deepEqual(await visited.page.evaluate(FIND_LABELS), labels);
  await visited.close();
});

/** Whether the last tile ends where its box, which is gray, ends. */
const ARE_TILES_FULL = `(() => {
  const [box, last] = [document.querySelector('.tiles'), document.querySelector('.tile:last-child')];
  const [{ right, bottom }, { right: x, bottom: y }] = [box, last].map((one) => one.getBoundingClientRect());
  return right - x < 2 && bottom - y < 2;
})()`;

test('at common window widths, the tiles of the overview leave no gap, and the fields for a date and a time are wide enough on a desktop', async () => {
  const visited = await visit(browser, DESKTOP);
  const { page } = visited;
  for (const name of ['overview', 'overview-of-key']) {
    await open(visited, name);
    for (const width of [320, 600, 1000, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      assert.equal(await page.evaluate(ARE_TILES_FULL), true, `${name} at ${width} px`);
    }
  }
  await open(visited, 'webhook');
  const { width = 0 } = (await page.locator('#from').boundingBox()) ?? {};
  assert(width >= 230, 'a field that is 188 px wide cuts off “11/29/2026, 08:15 PM”');
  await visited.close();
});

async function open({ page }: Visit, name: string): Promise<void> {
  await page.goto(`${server.url}/${name}`);
}

test('no page of the console has inline styles, inline scripts or references to another origin', () => {
  for (const [name, text] of Object.entries(SAMPLE_PAGES)) {
    assert.doesNotMatch(text, /\sstyle=|<style|\son[a-z]+=|javascript:|<script(?! src="\/console\/assets\/)/, name);
    for (const [, url = ''] of text.matchAll(/(?:src|href|action)="([^"]*)"/g))
      assert.match(url, /^(?:\/console(?:\/|$)|\/docs$|#)/, `${name} refers to ${url}`);
  }
});

test('every page of the console has one h1, unique IDs, and a field for every label', () => {
  for (const [name, text] of Object.entries(SAMPLE_PAGES)) {
    assert.equal(text.match(/<h1/g)?.length, 1, `${name} has one h1`);
    const ids = [...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, `the ids of ${name} are unique`);
    for (const [, id] of text.matchAll(/<label for="([^"]+)"/g)) assert(ids.includes(id), `${name} has a field ${id}`);
  }
});

test('console pages work with the keyboard: the first Tab stop is a link that skips the navigation, the focus is visible, and forms can be opened', async () => {
  const visited = await visit(browser, DESKTOP);
  const { page } = visited;
  await open(visited, 'end-user');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content');
  assert(
    ((await page.evaluate('document.activeElement.getBoundingClientRect().top')) as number) >= 0,
    'the skip link is visible when focused',
  );
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Back to end users');
  const outlines: unknown[] = [];
  for (let pressed = 0; pressed < 60; pressed++) {
    await page.keyboard.press('Tab');
    outlines.push(
      await page.evaluate(
        "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'",
      ),
    );
  }
  assert(outlines.every(Boolean), 'every focused element has an outline');
  await page.getByText('Add credits').focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.type('50');
  assert.equal(await page.getByLabel('Amount').first().inputValue(), '50');
  await visited.close();
});

test('a button copies the secret of a new API key, and the button is hidden without JavaScript', async () => {
  const visited = await visit(browser, { ...DESKTOP, permissions: ['clipboard-read', 'clipboard-write'] });
  await open(visited, 'key-created');
  await visited.page.getByRole('button', { name: 'Copy' }).click();
  await visited.page.getByText('Copied.').waitFor();
  assert.equal(await visited.page.evaluate('navigator.clipboard.readText()'), SECRET);
  await visited.close();

  const plain = await visit(browser, { ...DESKTOP, javaScriptEnabled: false });
  await open(plain, 'key-created');
  assert.equal(await plain.page.getByRole('button', { name: 'Copy' }).count(), 0);
  assert.equal(await plain.page.locator('#secret').innerText(), SECRET);
  await plain.close();
});

test('the console shows times in the time zone of the browser, with the UTC time in a tooltip', async () => {
  const visited = await visit(browser, { ...DESKTOP, timezoneId: 'Asia/Tokyo', locale: 'de-DE' });
  await open(visited, 'end-user');
  const now = visited.page.getByLabel('Current balance').locator('time');
  assert.equal(await now.innerText(), '20 Nov 2026, 23:05:31 GMT+9');
  assert.equal(await now.getAttribute('title'), '20 Nov 2026, 14:05:31 UTC');
  const first = visited.page
    .getByRole('table', { name: 'Transactions' })
    .or(visited.page.locator('.history'))
    .locator('time')
    .first();
  assert.equal(await first.innerText(), '20 Nov 2026, 22:59:45');
  assert.equal(await first.getAttribute('title'), '20 Nov 2026, 13:59:45 UTC');
  assert.doesNotMatch(await visited.page.locator('.history thead').innerText(), /UTC/);
  await visited.close();
});

test('the forms and the plan of an end user show the same local dates, and the chart says that its days are in UTC', async () => {
  const visited = await visit(browser, { ...DESKTOP, timezoneId: 'Pacific/Kiritimati' });
  for (const [name, sentences] of Object.entries({
    'end-user': [
      'The cycle renews with 1,000 credits on 14 Dec 2026, 04:05:31 GMT+14.',
      'stay usable until 14 Dec 2026.',
      'The current period ends on 14 Dec 2026.',
    ],
    'end-user-plan': [
      'On 14 Dec 2026, 04:05:31 GMT+14, the plan changes',
      'Scheduled on 20 Nov 2026',
      'replaces the change that is scheduled for 14 Dec 2026.',
    ],
  })) {
    await open(visited, name);
    await visited.page.evaluate(PREPARE);
    const text = await visited.page.locator('main').innerText();
    for (const sentence of sentences) assert(text.includes(sentence), `${name}: ${sentence}`);
    assert.match(text, /Balance over time\s+Days start at 00:00 UTC\./);
  }
  await visited.close();
});

test('in the console, every date outside of charts is a <time> element or says UTC', () => {
  for (const [name, text] of Object.entries(SAMPLE_PAGES)) {
    const plain = text.replaceAll(/<(time|figure|select)\b[\s\S]*?<\/\1>/g, '');
    const dates = plain.match(/\b\d{1,2} [A-Z][a-z]{2} \d{4}\b(?!, \d\d:\d\d:\d\d UTC)/g);
    assert.equal(dates, null, `the dates of ${name}`);
  }
});

test('without JavaScript, the console shows times in UTC and labels them as UTC', async () => {
  const visited = await visit(browser, { ...DESKTOP, javaScriptEnabled: false, timezoneId: 'Asia/Tokyo' });
  await open(visited, 'end-user');
  assert.equal(
    await visited.page.getByLabel('Current balance').locator('time').innerText(),
    '20 Nov 2026, 14:05:31 UTC',
  );
  assert.match(await visited.page.locator('.history thead').innerText(), /Time \(UTC\)/);
  await visited.close();
});

test('without JavaScript, the form to add credits opens, and opening another form closes it', async () => {
  const visited = await visit(browser, { ...DESKTOP, javaScriptEnabled: false });
  await open(visited, 'end-user');
  const amounts = visited.page.getByLabel('Amount');
  await visited.page.getByText('Add credits').click();
  assert.equal(await amounts.first().isVisible(), true);
  await visited.page.getByText('Subtract credits').click();
  assert.equal(await amounts.first().isVisible(), false);
  await visited.close();
});

test('the printed page of an end user contains the transactions and no buttons', async () => {
  const visited = await visit(browser, DESKTOP);
  await open(visited, 'end-user');
  await visited.page.emulateMedia({ media: 'print' });
  assert.equal(await visited.page.getByRole('button').count(), 0);
  assert.equal(await visited.page.getByRole('heading', { name: 'Transactions' }).isVisible(), true);
  await visited.close();
});
