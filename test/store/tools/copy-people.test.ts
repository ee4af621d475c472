// Tests that a copy of a ledger includes the console users: they can sign in, and invitations still work.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type Database, databaseAt } from '../../../src/config.ts';
import { copyDatabase } from '../../../src/open-tools.ts';
import {
  assertGoesTo,
  decode,
  invite,
  newMember,
  newOwner,
  PASSWORD,
  someEmail,
  Visitor,
} from '../../console/visitor.ts';
import { type Scrip, startScrip } from '../../http/running-service.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { temporaryFile } from '../temporary-ledger.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const at = (url: string): Database => databaseAt('a test', url, {});

async function copied(from: Database, to: Database, look: (scrip: Scrip) => Promise<void>): Promise<number> {
  const { people } = await copyDatabase(from, to, () => {});
  const scrip = await startScrip({ database: to });
  await look(scrip).finally(() => scrip.stop());
  return people;
}

test('after a ledger is copied to PostgreSQL and back to a file, console users can sign in, the console shows their email addresses, and invitations work', async () => {
  const source = at(`file:${temporaryFile()}`);
  const endUser = randomUUID();
  let scrip = await startScrip({ database: source });
  const ada = await newOwner(scrip, 'Lovelace Ltd');
  const bob = await newMember(scrip, ada);
  const other = await newOwner(scrip, 'Other');
  const links = [await invite(ada, 'member'), await invite(ada, 'owner')] as const;
  assert.equal(
    (await bob.post(`/console/end-users/${endUser}/add`, { amount: '12', validity: '31', note: 'Sorry' })).status,
    303,
  );
  const known = [ada.email, bob.email];
  await scrip.stop();

  const look = (link: string, role: string) => async (copy: Scrip) => {
    assert.equal(await ada.isSignedIn().catch(() => false), false, 'sessions are not copied');
    const owner = new Visitor(copy);
    assertGoesTo(await owner.signIn(ada.email), '/console/overview');
    const page = decode((await owner.get(`/console/end-users/${endUser}`)).text);
    assert(page.includes(bob.email) && page.includes('Sorry'), 'the page shows the email address of the actor');
    const members = decode((await owner.get('/console/members')).text);
    for (const email of known) assert(members.includes(email), `${email} is a member`);
    const inviters = [...members.matchAll(/data-label="Created by" class="by">([^<]+)</g)].map(
      ([, inviter]) => inviter,
    );
    assert.equal(inviters[0], ada.email, 'the copy knows who created an invitation');
    assert(!members.includes(other.email), 'users of another account are not members');
    const member = new Visitor(copy);
    assertGoesTo(await member.signIn(bob.email), '/console/overview');
    assert.equal((await member.get('/console/members')).status, 403, 'a member is not an owner');
    assert.equal((await new Visitor(copy).signIn(ada.email, 'not the right password')).status, 200);
    const guest = new Visitor(copy);
    const email = someEmail();
    assert.equal((await guest.post(link, { email, password: PASSWORD })).status, 303, 'an invitation still works');
    assertGoesTo(await guest.signIn(email), '/console/overview');
    assert.equal((await guest.get('/console/members')).status, role === 'owner' ? 200 : 403);
    known.push(email);
  };
  const there = at(await server.createDatabase());
  assert.equal(await copied(source, there, look(links[0], 'member')), 3);
  // PostgreSQL needs time to close the connections of the stopped server.
  await new Promise((resolve) => setTimeout(resolve, 200));
  const back = at(`file:${temporaryFile()}`);
  assert.equal(await copied(there, back, look(links[1], 'owner')), 4);
  scrip = await startScrip({ database: back });
  const late = await new Visitor(scrip).get(links[0]);
  await scrip.stop();
  assert.equal(late.status, 404, 'an invitation that was used in a copy cannot be used in a copy of that copy');
});
