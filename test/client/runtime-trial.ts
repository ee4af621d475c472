// One trial of the client in a runtime: the services that it meets, the program that the runtime is given, and what the
// services must have seen in the end.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Scrip, startScrip } from '../http/running-service.ts';
import type { Places } from './essentials.ts';
import { answers, dropsConnection, HostileScrip, says, sendsHeadersOnly } from './hostile-scrip.ts';

const SAID = 'The client does here what it must.';

export class RuntimeTrial {
  readonly #scrip: Scrip;
  readonly #dropping: HostileScrip;
  readonly #redirecting: HostileScrip;
  readonly #elsewhere: HostileScrip;
  readonly #silent: HostileScrip;

  private constructor(scrip: Scrip, hostile: readonly [HostileScrip, HostileScrip, HostileScrip, HostileScrip]) {
    this.#scrip = scrip;
    [this.#dropping, this.#redirecting, this.#elsewhere, this.#silent] = hostile;
  }

  static async prepare(): Promise<RuntimeTrial> {
    const start = () => HostileScrip.start();
    return new RuntimeTrial(await startScrip(), [await start(), await start(), await start(), await start()]);
  }

  /** Writes the program into a folder in which `@scrip/client` is found. @returns its path */
  async writeProgram(folder: string): Promise<string> {
    this.#dropping.behave(dropsConnection, answers);
    this.#redirecting.behave(says(307, '', { location: `${this.#elsewhere.url}/add` }));
    this.#elsewhere.behave(answers);
    this.#silent.behave(sendsHeadersOnly);
    const places: Places = {
      url: this.#scrip.url,
      key: this.#scrip.writeKey,
      dropping: this.#dropping.url,
      redirecting: this.#redirecting.url,
      silent: this.#silent.url,
    };
    const path = join(folder, 'essential.mjs');
    const essentials = pathToFileURL(join(import.meta.dirname, 'essentials.ts')).href;
    await writeFile(
      path,
      `import * as client from '@scrip/client';
import { tryEssentials } from ${JSON.stringify(essentials)};
await tryEssentials(client, ${JSON.stringify(places)});
console.log(${JSON.stringify(SAID)});
`,
    );
    return path;
  }

  /** @param said what the program wrote to its standard output */
  async assertHeld(said: string): Promise<void> {
    assert.equal(said.trim(), SAID);
    const keys = this.#dropping.received.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 2, 'a write whose connection dropped was sent twice');
    assert.equal(this.#dropping.effects.length, 1, 'under one key, so that it is done once');
    assert.equal(this.#redirecting.received.length, 1, 'a redirect is asked for once');
    assert.equal(this.#elsewhere.received.length, 0, 'and not followed: the API key goes nowhere else');
    for (const { abandoned } of this.#silent.received) assert.equal(await abandoned, true, 'who is late is given up');
  }

  async stop(): Promise<void> {
    await this.#scrip.stop();
    for (const hostile of [this.#dropping, this.#redirecting, this.#elsewhere, this.#silent]) await hostile.stop();
  }
}
