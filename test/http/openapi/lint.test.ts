// Lints the OpenAPI document with the strict rules in redocly.yaml, so that client generators for other languages can
// use it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { startScrip } from '../running-service.ts';
import { documentOf, type OpenApi } from './described-service.ts';

const REDOCLY = join(import.meta.dirname, '../../../node_modules/@redocly/cli/bin/cli.js');
const RULES = join(import.meta.dirname, 'redocly.yaml');
const OFFLINE = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };

let document: OpenApi;
let folder: string;
before(async () => {
  const scrip = await startScrip();
  document = await documentOf(scrip);
  await scrip.stop();
  folder = await mkdtemp(join(tmpdir(), 'scrip-lint-'));
});
after(() => rm(folder, { recursive: true, force: true }));

async function complaintsAbout(described: unknown): Promise<readonly string[]> {
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(described));
  const args = [REDOCLY, 'lint', file, '--config', RULES, '--lint-config', 'error', '--format', 'json'];
  const linted = promisify(execFile)(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...OFFLINE },
    timeout: 60_000,
  });
  const { stdout } = await linted.catch((error) => error as { stdout: string });
  assert.notEqual(stdout, '', 'the linter printed its result');
  const { problems } = JSON.parse(stdout) as {
    problems: { ruleId: string; message: string; location: { pointer?: string }[] }[];
  };
  return problems.map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`);
}

function replaced(from: string, to: string): unknown {
  const text = JSON.stringify(document);
  assert(text.includes(from), `the document does not contain ${from}`);
  return JSON.parse(text.replaceAll(from, to));
}

test('the OpenAPI document passes the strict rules of the linter', async () => {
  assert.deepEqual(await complaintsAbout(document), []);
});

test('control: the OpenAPI linter reports a broken reference, a wrong example, a missing operation ID, and an error response that is not a problem document', async () => {
  const broken: readonly (readonly [rule: string, described: unknown])[] = [
    ['no-unresolved-refs', replaced('#/components/schemas/Addition', '#/components/schemas/Sum')],
    ['no-invalid-media-type-examples', replaced('"active_balance":1048', '"active_balance":"1048"')],
    ['operation-operationId', replaced('"operationId"', '"x-name"')],
    ['operation-4xx-problem-details-rfc7807', replaced('application/problem+json', 'application/json')],
  ];
  for (const [rule, described] of broken) {
    const complaints = await complaintsAbout(described);
    assert(
      complaints.some((complaint) => complaint.startsWith(`${rule} `)),
      `${rule} is not among ${complaints.join('; ')}`,
    );
  }
});
