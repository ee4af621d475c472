// Provides the paths of the client and of the TypeScript compilers, and runs programs with Node.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

export const REPOSITORY = join(import.meta.dirname, '../..');
export const CLIENT = join(REPOSITORY, 'client');
export const TSC = join(REPOSITORY, 'node_modules/typescript/bin/tsc');

/** TypeScript 7, which the project uses, does not support `moduleResolution: node`. TypeScript 5 does. */
export const TSC_5 = join(REPOSITORY, 'node_modules/typescript-5/bin/tsc');

const TIMEOUT_MS = 60_000;

interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Returns a PATH in which `node` is the Node installed on the machine. This Node may be older than the Node that runs
 * the tests.
 */
export function pathWithoutNodeModules(): string {
  const path = (process.env.PATH ?? '').split(delimiter).filter((part) => !part.includes('node_modules'));
  return path.join(delimiter);
}

export async function runNode(folder: RunOptions | string, ...args: readonly string[]): Promise<string> {
  const { cwd, env = {} } = typeof folder === 'string' ? { cwd: folder } : folder;
  const options = { cwd, env: { ...process.env, ...env }, timeout: TIMEOUT_MS };
  const { stdout } = await promisify(execFile)(process.execPath, args, options).catch(({ stdout, stderr, message }) =>
    assert.fail(`${message}\n${stdout}${stderr}`),
  );
  return stdout;
}
