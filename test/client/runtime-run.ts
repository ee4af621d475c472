// Prepares a run of essentials.ts in a JavaScript runtime, and checks the requests that the servers received.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { type Scrip, startScrip } from '../http/running-service.ts';
import type { Servers } from './essentials.ts';
import { dropsConnection, HostileScrip, responds, sends, sendsHeadersOnly } from './hostile-scrip.ts';

const OUTPUT = 'All checks passed.';

export class RuntimeRun {
  readonly #scrip: Scrip;
  readonly #dropping: HostileScrip;
  readonly #redirecting: HostileScrip;
  readonly #elsewhere: HostileScrip;
  readonly #silent: HostileScrip;

  private constructor(scrip: Scrip, hostile: readonly [HostileScrip, HostileScrip, HostileScrip, HostileScrip]) {
    this.#scrip = scrip;
    [this.#dropping, this.#redirecting, this.#elsewhere, this.#silent] = hostile;
  }

  static async prepare(): Promise<RuntimeRun> {
    const start = () => HostileScrip.start();
    return new RuntimeRun(await startScrip(), [await start(), await start(), await start(), await start()]);
  }

  /** Writes `program.mjs`, which prints the result, and `checks.mjs`, whose function `runChecks` returns the result. */
  async writeProgram(folder: string): Promise<string> {
    this.#dropping.behave(dropsConnection, responds);
    this.#redirecting.behave(sends(307, '', { location: `${this.#elsewhere.url}/add` }));
    this.#elsewhere.behave(responds);
    this.#silent.behave(sendsHeadersOnly);
    const servers: Servers = {
      url: this.#scrip.url,
      key: this.#scrip.writeKey,
      dropping: this.#dropping.url,
      redirecting: this.#redirecting.url,
      silent: this.#silent.url,
    };
    // Node 20 cannot run TypeScript, so the program contains JavaScript only.
    const essentials = await readFile(join(import.meta.dirname, 'essentials.ts'), 'utf8');
    await writeFile(join(folder, 'essentials.mjs'), stripTypeScriptTypes(essentials));
    await writeFile(
      join(folder, 'checks.mjs'),
      `import * as client from 'scrip-client';
import { testEssentials } from './essentials.mjs';
export async function runChecks() {
  await testEssentials(client, ${JSON.stringify(servers)});
  return ${JSON.stringify(OUTPUT)};
}
`,
    );
    const path = join(folder, 'program.mjs');
    await writeFile(path, `import { runChecks } from './checks.mjs';\nconsole.log(await runChecks());\n`);
    return path;
  }

  async assertPassed(output: string): Promise<void> {
    assert.equal(output.trim(), OUTPUT);
    const keys = this.#dropping.received.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 2, 'a write whose connection dropped was sent twice');
    assert.equal(this.#dropping.applied.length, 1, 'that write was applied once');
    assert.equal(this.#redirecting.received.length, 1, 'the redirect was received once');
    assert.equal(this.#elsewhere.received.length, 0, 'the client did not follow the redirect');
    for (const { canceled } of this.#silent.received)
      assert.equal(await canceled, true, 'the connection of a timed-out request was closed');
  }

  async stop(): Promise<void> {
    await this.#scrip.stop();
    for (const hostile of [this.#dropping, this.#redirecting, this.#elsewhere, this.#silent]) await hostile.stop();
  }
}
