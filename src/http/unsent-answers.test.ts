// What is counted of large answers, and that none is forgotten: sent, cut off, or never begun.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { LARGE_ANSWER_BYTES, UNSENT_BYTES_MAX, UnsentAnswers } from './unsent-answers.ts';

const ACME = 1;
const OTHER = 2;
const HALF = UNSENT_BYTES_MAX / 2;

function answerOn(socket = new EventEmitter()): ServerResponse & EventEmitter {
  return Object.assign(new EventEmitter(), { req: { socket } }) as unknown as ServerResponse & EventEmitter;
}

test('an account has as much unsent as it leaves free, and another one finds room', () => {
  const unsent = new UnsentAnswers();
  assert(unsent.begin(ACME, HALF, answerOn()));
  assert(!unsent.begin(ACME, LARGE_ANSWER_BYTES, answerOn()));
  assert(unsent.begin(ACME, LARGE_ANSWER_BYTES - 1, answerOn()), 'small ones are not counted');
  assert(unsent.begin(OTHER, HALF / 2, answerOn()));
  assert(!unsent.begin(OTHER, LARGE_ANSWER_BYTES, answerOn()));
});

test('an answer that is sent makes room, once, also where its connection closes later', () => {
  const unsent = new UnsentAnswers();
  const socket = new EventEmitter();
  const [first, second] = [answerOn(socket), answerOn(socket)];
  assert(unsent.begin(ACME, HALF / 2, first));
  assert(unsent.begin(ACME, HALF / 2, second));
  assert(!unsent.begin(ACME, LARGE_ANSWER_BYTES, answerOn()));
  first.emit('finish');
  socket.emit('close');
  second.emit('finish');
  assert(unsent.begin(ACME, HALF, answerOn()), 'all of it');
  assert(!unsent.begin(ACME, LARGE_ANSWER_BYTES, answerOn()), 'and no more');
});

test('of answers that never had their turn a connection that closes lets go, with one listener for all of them', () => {
  const unsent = new UnsentAnswers();
  const socket = new EventEmitter();
  for (let number = 0; number < 100; number++) assert(unsent.begin(ACME, LARGE_ANSWER_BYTES, answerOn(socket)));
  assert.equal(socket.listenerCount('close'), 1);
  socket.emit('close');
  assert(unsent.begin(ACME, HALF, answerOn()));
});

test('one of any size is sent while nothing else is unsent', () => {
  const unsent = new UnsentAnswers();
  const huge = answerOn();
  assert(unsent.begin(ACME, 2 * UNSENT_BYTES_MAX, huge));
  assert(!unsent.begin(OTHER, LARGE_ANSWER_BYTES, answerOn()));
  huge.emit('finish');
  assert(unsent.begin(OTHER, 2 * UNSENT_BYTES_MAX, answerOn()));
});
