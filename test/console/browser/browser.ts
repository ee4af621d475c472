// Runs Chromium for tests, collects the errors of each page, and finds accessibility problems with axe.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import sparticuz from '@sparticuz/chromium';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** A step that hangs must fail before the whole test times out. */
const STEP_TIMEOUT_MS = 15_000;

const run = promisify(execFile);
const MODULES = join(import.meta.dirname, '../../../node_modules');
const CHROMIUM = join(MODULES, '.cache/scrip/chromium', versionOf('@sparticuz/chromium'));
const EXTRACT = `import chromium from '@sparticuz/chromium'; await chromium.executablePath();`;

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export interface Visit {
  readonly page: Page;
  readonly errors: readonly string[];
  close(): Promise<void>;
}

/**
 * The Chromium package sets these flags for serverless functions. We remove the flags for two reasons. With
 * `--single-process`, closing a page would close the browser. With the GPU flags, Chromium emulates a GPU. Checking 38
 * pages with axe took 16.3 s of CPU time, of which the GPU emulation took 6.5 s.
 */
const SERVERLESS_FLAGS =
  /^--(?:single-process|in-process-gpu|ignore-gpu-blocklist|use-gl|use-angle|enable-unsafe-swiftshader)\b/;

export async function launchBrowser(): Promise<Browser> {
  const args = [...sparticuz.args.filter((argument) => !SERVERLESS_FLAGS.test(argument)), '--disable-gpu'];
  return chromium.launch({ executablePath: await chromiumPath(), args, headless: true });
}

/**
 * Extracts Chromium from its compressed package. By default, the package extracts Chromium into a fixed temporary
 * folder, so a test file could start a browser that another test file is still extracting.
 */
async function chromiumPath(): Promise<string> {
  const path = join(CHROMIUM, 'chromium');
  if (existsSync(path)) return path;
  mkdirSync(dirname(CHROMIUM), { recursive: true });
  const folder = mkdtempSync(`${CHROMIUM}-`);
  try {
    const env = { ...process.env, TMPDIR: folder };
    await run(process.execPath, ['--input-type=module', '--eval', EXTRACT], { cwd: import.meta.dirname, env });
    renameSync(folder, CHROMIUM);
  } catch (error) {
    // Another test file may have extracted Chromium in the meantime.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return path;
}

function versionOf(name: string): string {
  return JSON.parse(readFileSync(join(MODULES, name, 'package.json'), 'utf8')).version;
}

export async function visit(browser: Browser, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(STEP_TIMEOUT_MS);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(`thrown: ${error.message}`));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // The browser aborts a navigation if a test leaves a page that is still loading.
    if (!(request.isNavigationRequest() && reason === 'net::ERR_ABORTED'))
      errors.push(`failed: ${request.url()} ${reason}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(`${message.type()}: ${message.text()}`);
  });
  return { page, errors, close: () => context.close() };
}

export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

/** `structure` means all rules except those about colors. */
export type Rules = 'all' | 'colors' | 'structure';

const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

const RULES: Readonly<Record<Rules, object>> = {
  all: {},
  colors: { runOnly: COLOR_RULES },
  structure: { rules: Object.fromEntries(COLOR_RULES.map((rule) => [rule, { enabled: false }])) },
};

export async function axeViolations(page: Page, rules: Rules = 'all'): Promise<string[]> {
  // This function loads axe with `evaluate`, because the Content-Security-Policy would block a script element.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  return page.evaluate(
    async (options) => {
      const { axe } = globalThis as unknown as {
        axe: {
          run(options: object): Promise<{
            violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[];
          }>;
        };
      };
      const { violations } = await axe.run(options);
      return violations.map(
        ({ id, help, nodes }) =>
          `${id}: ${help}\n  ${nodes.map(({ html, failureSummary }) => `${html}\n  ${failureSummary}`).join('\n  ')}`,
      );
    },
    { ...RULES[rules], resultTypes: ['violations'] },
  );
}

export async function assertSound(visited: Visit, name: string, rules: Rules = 'all'): Promise<void> {
  assert.deepEqual(await axeViolations(visited.page, rules), [], `axe on ${name}`);
  await assertFits(visited, name);
}

export async function assertFits({ page, errors }: Visit, name: string): Promise<void> {
  assert.deepEqual(errors, [], `errors on ${name}`);
  assert.deepEqual(await overflow(page), null, `${name} is wider than the screen`);
}

async function overflow(page: Page): Promise<string | null> {
  return page.evaluate(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return null;
    const out = [...document.querySelectorAll('main *')].find((element) => element.getBoundingClientRect().right > clientWidth);
    return scrollWidth - clientWidth + ' px: ' + (out?.outerHTML ?? '').slice(0, 200);
  })()`);
}
