// Tests the Docker image without a container engine: builds it in a folder, and runs it as the user of the image.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { readConfig } from '../../src/config.ts';
import { eventually } from '../http/running-service.ts';
import { freePort } from '../store/postgres/postgres-server.ts';
import { baseEnvironment, buildDockerfile, type Image, inRoot, instructionsOf } from './dockerfile-run.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const BUILD_MS_MAX = 200_000;
const isRoot = process.getuid?.() === 0;

let folder: string;
let image: Image;
before(
  async () => {
    folder = mkdtempSync(join(tmpdir(), 'scrip-dockerfile-'));
    // The user of the image must be able to read the folder.
    chmodSync(folder, 0o755);
    image = await buildDockerfile(ROOT, folder);
  },
  { timeout: BUILD_MS_MAX },
);
after(() => rmSync(folder, { recursive: true, force: true }));

function commandOf(instruction: string): string[] {
  const text = image.settings.get(instruction) ?? assert.fail(`no ${instruction}`);
  const words: string[] = JSON.parse(/\[.*\]$/.exec(text)?.[0] ?? assert.fail(`${instruction} is not JSON: ${text}`));
  return words.map((word) => inRoot(word, image.root));
}

function settings(port: number) {
  const environment = Object.entries(image.environment).map(([name, value]) => [name, inRoot(value, image.root)]);
  const { PATH } = baseEnvironment(image.root);
  const env = { PATH, ...Object.fromEntries(environment), HOST: '127.0.0.1', PORT: String(port) };
  return { cwd: image.workingFolder, env, ...(isRoot ? image.user : {}) };
}

async function exitCodeOf(child: ChildProcess): Promise<number | null> {
  const [code] = await once(child, 'exit');
  return code;
}

describe('the Docker image', { timeout: BUILD_MS_MAX }, () => {
  test('a container runs as a non-root user, becomes healthy, runs Scrip commands, and stops on its stop signal', async (t) => {
    assert(image.user !== null && image.user.uid > 0 && image.user.gid > 0, 'the user of the image is not root');
    const running = settings(await freePort());
    const [program = '', ...args] = [...commandOf('ENTRYPOINT'), ...commandOf('CMD')];
    const scrip = spawn(program, args, { ...running, stdio: ['ignore', 'ignore', 'inherit'] });
    t.after(() => scrip.kill('SIGKILL'));
    const [node = '', ...check] = commandOf('HEALTHCHECK');
    const isHealthy = async () => (await exitCodeOf(spawn(node, check, running))) === 0;
    const isReady = () =>
      fetch(`http://127.0.0.1:${running.env.PORT}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isReady, 'the server is ready');
    assert(await isHealthy(), 'the health check passes');
    const created = await promisify(execFile)('scrip', ['key', 'create', '--account', 'acme'], running);
    assert.match(created.stdout, /scrip_write_\w+/);
    assert(existsSync(join(image.root, 'data/scrip.db')), 'the ledger is in the volume');
    scrip.kill(image.settings.get('STOPSIGNAL') as NodeJS.Signals);
    assert.equal(await exitCodeOf(scrip), 0);
    assert.equal(await isHealthy(), false);
  });

  test('the environment variables of the Docker image are valid settings, and the image exposes the port that PORT names', () => {
    const { PORT = '', DATABASE_URL, SQLITE_TMPDIR } = image.environment;
    assert.equal(readConfig(image.environment).port, Number(PORT));
    assert.equal(image.settings.get('EXPOSE'), PORT);
    // The root file system may be read-only, and SQLite needs a folder for temporary files.
    assert.deepEqual([DATABASE_URL, SQLITE_TMPDIR], ['file:/data/scrip.db', '/data']);
  });

  test('the user of the Docker image may write only to the volume, and the image has no source code or development dependencies', () => {
    assert.equal(commandOf('VOLUME')[0], join(image.root, 'data'));
    if (isRoot) {
      assert.equal(statSync(join(image.root, 'data')).uid, image.user?.uid);
      for (const path of ['app', 'app/dist', 'app/dist/main.js', 'app/node_modules'])
        assert.deepEqual([statSync(join(image.root, path)).uid, statSync(join(image.root, path)).mode & 0o022], [0, 0]);
    }
    for (const path of ['app/src', 'app/node_modules/typescript', 'app/node_modules/@biomejs/biome'])
      assert(!existsSync(join(image.root, path)), path);
  });
});

test('the Docker image tests reject a Dockerfile that needs BuildKit', async () => {
  for (const text of ['# syntax=docker/dockerfile:1\nFROM node:26', 'FROM node:26\nRUN <<EOF\necho\nEOF'])
    assert.throws(() => instructionsOf(text), /BuildKit/);
  assert.deepEqual(instructionsOf('FROM node:26 AS a\n# why\nRUN one && \\\n  two\n'), [
    ['FROM', 'node:26 AS a'],
    ['RUN', 'one && two'],
  ]);
});
