// Where the client's package is, and how the tests compile it and run programs against it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const REPOSITORY = join(import.meta.dirname, '../..');
export const CLIENT = join(REPOSITORY, 'client');
export const TSC = join(REPOSITORY, 'node_modules/typescript/bin/tsc');

const TIME_MS = 60_000;

interface Where {
  readonly cwd: string;
  /** In addition to that of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another Node than the one of the project. */
  readonly node?: string;
}

/** @returns what it says; fails with what it says when it fails */
export async function runNode(where: Where | string, ...args: readonly string[]): Promise<string> {
  const { cwd, env = {}, node = process.execPath } = typeof where === 'string' ? { cwd: where } : where;
  const options = { cwd, env: { ...process.env, ...env }, timeout: TIME_MS };
  const { stdout } = await promisify(execFile)(node, args, options).catch(({ stdout, stderr, message }) =>
    assert.fail(`${message}\n${stdout}${stderr}`),
  );
  return stdout;
}
