// A form that is sent twice is done once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DoneOnce } from './done-once.ts';

function counting(): { readonly action: () => Promise<number>; readonly count: () => number } {
  let count = 0;
  return { action: async () => ++count, count: () => count };
}

test('the same form of the same person is done once, however often it is sent, also at the same time', async () => {
  const done = new DoneOnce<number>();
  const { action, count } = counting();
  assert.deepEqual(await Promise.all([done.do('ada', 'x', action), done.do('ada', 'x', action)]), [1, 1]);
  assert.equal(await done.do('ada', 'x', action), 1);
  assert.equal(count(), 1);
});

test('another form, another person, and a request without a form are done', async () => {
  const done = new DoneOnce<number>();
  const { action, count } = counting();
  await done.do('ada', 'x', action);
  await done.do('ada', 'y', action);
  await done.do('bob', 'x', action);
  await done.do('ada', '', action);
  await done.do('ada', '', action);
  assert.equal(count(), 5);
});

test('what failed may be tried again', async () => {
  const done = new DoneOnce<number>();
  await assert.rejects(
    done.do('ada', 'x', async () => Promise.reject(new Error('away'))),
    /away/,
  );
  assert.equal(await done.do('ada', 'x', async () => 7), 7);
});

test('the oldest are forgotten, so that memory stays bounded', async () => {
  const done = new DoneOnce<number>(2);
  const { action, count } = counting();
  for (const once of ['x', 'y', 'z']) await done.do('ada', once, action);
  await done.do('ada', 'z', action);
  assert.equal(count(), 3);
  await done.do('ada', 'x', action);
  assert.equal(count(), 4);
});
