// A test reporter for mutation testing. It exits at the first failed test, because one failed test kills the mutant.

import type { TestEvent } from 'node:test/reporters';

export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type } of events) if (type === 'test:fail') process.exit(1);
  yield '';
}
