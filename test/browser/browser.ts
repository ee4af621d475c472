// A real browser for the tests: Chromium from npm, pages that keep every error that they log, and axe, which finds what
// stands in the way of people who do not see, or do not use a mouse.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import sparticuz from '@sparticuz/chromium';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Long enough for a machine that does other things too, short enough that a test that hangs says where. */
const STEP_TIMEOUT_MS = 15_000;

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export interface Visit {
  readonly page: Page;
  /** What the page logged as an error, threw, failed to load, or what the Content-Security-Policy stopped. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

/**
 * What suits where this build comes from, and not us. One process for all pages: closing a visit would close the browser
 * with it. And graphics by an emulated processor for them, which our pages have no use for: of 16.3 seconds of processor
 * time for 38 pages with axe it took 6.5.
 */
const UNWANTED =
  /^--(?:single-process|in-process-gpu|ignore-gpu-blocklist|use-gl|use-angle|enable-unsafe-swiftshader)\b/;

export async function launchBrowser(): Promise<Browser> {
  const args = [...sparticuz.args.filter((argument) => !UNWANTED.test(argument)), '--disable-gpu'];
  return chromium.launch({ executablePath: await sparticuz.executablePath(), args, headless: true });
}

/** A page of a visitor of its own: nothing is shared with the others, cookies neither. */
export async function visit(browser: Browser, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(STEP_TIMEOUT_MS);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(`thrown: ${error.message}`));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // Whoever goes on before a page is there breaks it off, and browsers log nothing.
    if (!(request.isNavigationRequest() && reason === 'net::ERR_ABORTED'))
      errors.push(`failed: ${request.url()} ${reason}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(`${message.type()}: ${message.text()}`);
  });
  return { page, errors, close: () => context.close() };
}

export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

/** What a look can change: whatever else axe looks for is the same in all of them. */
export type Rules = 'all' | 'colours';

/** All that axe finds, of whatever weight, with where; nothing for a page that we ship. */
export async function axeViolations(page: Page, rules: Rules = 'all'): Promise<string[]> {
  // Not as a script of the page, which its Content-Security-Policy would rightly stop.
  await page.evaluate(AXE);
  return page.evaluate(async (rules) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(options: object): Promise<{
          violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[];
        }>;
      };
    };
    const { violations } = await axe.run(
      rules === 'colours' ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {},
    );
    return violations.map(
      ({ id, help, nodes }) =>
        `${id}: ${help}\n  ${nodes.map(({ html, failureSummary }) => `${html}\n  ${failureSummary}`).join('\n  ')}`,
    );
  }, rules);
}

/** That axe finds nothing, that nothing was logged as an error, and that the page is no wider than the screen. */
export async function assertSound({ page, errors }: Visit, what: string, rules: Rules = 'all'): Promise<void> {
  assert.deepEqual(await axeViolations(page, rules), [], `axe on ${what}`);
  assert.deepEqual(errors, [], `errors on ${what}`);
  assert.deepEqual(await overflow(page), null, `${what} is wider than the screen`);
}

/** By how much the page is wider than the screen, and what sticks out; null when nothing does. */
export async function overflow(page: Page): Promise<string | null> {
  return page.evaluate(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return null;
    const out = [...document.querySelectorAll('main *')].find((element) => element.getBoundingClientRect().right > clientWidth);
    return scrollWidth - clientWidth + ' px: ' + (out?.outerHTML ?? '').slice(0, 200);
  })()`);
}
