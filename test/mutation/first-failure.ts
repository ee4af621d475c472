// A test reporter for mutation testing: it exits at the first failure, because one failure kills the mutant.

import type { TestEvent } from 'node:test/reporters';

export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type } of events) if (type === 'test:fail') process.exit(1);
  yield '';
}
