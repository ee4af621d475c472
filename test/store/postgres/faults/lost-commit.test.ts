// A connection is lost just before the COMMIT of a batch. Another process then stores a renewal for the end user of the
// batch.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { after, before, test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf, keyed, NOON, problemsOf } from '../../temporary-ledger.ts';
import { openOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { isCommit } from '../tcp-proxy.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

test('a renewal that another process stored is not mistaken for the batch whose COMMIT was lost', {
  timeout: 20_000,
}, async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const line = await Line.to(server.port);
  const own = new URL(url);
  own.port = String(line.port);
  t.after(() => line.close());
  const ledger = await openOnMovedClock(t, own.href, () => wall);
  const other = await openOnMovedClock(t, url, () => wall);
  const ada = new EndUser(1, 1);
  await other.write([ada.startCycle(10, 1)]);
  wall += DAY_MS;
  let renewal: unknown = null;
  line.beforeCommit = async () => {
    renewal = await other.results([ada.settle()]);
  };
  assert.deepEqual(await ledger.results([ada.subtract(4)]), [ACCEPTED]);
  assert.deepEqual(renewal, [ACCEPTED]);
  assert.deepEqual(await historyOf(other, ada), ['-4 subtract', '+10 renew', '+10 start-cycle']);
  assert.equal(await balanceOf(other, ada), 6);
  assert.deepEqual(problemsOf(await other.audit()), []);
});

test('if the COMMIT of a refusal with a key is lost and every retry fails, the outcome is unknown', {
  timeout: 20_000,
}, async (t) => {
  const line = await Line.to(server.port);
  const own = new URL(await server.createDatabase());
  own.port = String(line.port);
  t.after(() => line.close());
  const ledger = await openOnMovedClock(t, own.href, () => NOON);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10)]);
  line.beforeCommit = async () => {
    line.isCut = true;
  };
  await assert.rejects(ledger.write([keyed(ada.subtract(50), 'order', '1')]), { code: 'OutcomeUnknown' });
  line.isCut = false;
});

class Line {
  /** While true, the proxy accepts no connection. */
  isCut = false;
  /**
   * When the next COMMIT arrives, the proxy calls this function once, and cuts the connection instead of forwarding the
   * COMMIT. New connections wait until the function has finished.
   */
  beforeCommit: (() => Promise<void>) | null = null;
  readonly #server: Server;
  #mended: Promise<void> = Promise.resolve();

  static async to(port: number): Promise<Line> {
    const line = new Line(port);
    line.#server.listen(0, '127.0.0.1');
    await once(line.#server, 'listening');
    return line;
  }

  private constructor(port: number) {
    this.#server = createServer(async (near) => {
      near.on('error', () => {});
      await this.#mended;
      if (this.isCut) return void near.destroy();
      const far = connect(port, '127.0.0.1').on('error', () => {});
      far.pipe(near);
      near.on('data', (data: Buffer) => {
        const work = this.beforeCommit;
        if (work === null || !isCommit(data)) return void far.write(data);
        this.beforeCommit = null;
        far.destroy();
        this.#mended = work();
        near.destroy();
      });
      near.on('close', () => far.destroy());
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
  }
}
