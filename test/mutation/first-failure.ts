// A reporter for mutation testing: the first test that fails kills a mutant, and the others need not run.

import type { TestEvent } from 'node:test/reporters';

export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type } of events) if (type === 'test:fail') process.exit(1);
  yield '';
}
