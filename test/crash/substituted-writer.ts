// Replaces Scrip's writer if `BATCH_RECORD` is set or `WEAKENED_WRITER` is `halves` (see weakened-writer.ts).

import { openSync, writeSync } from 'node:fs';
import type { Command } from '../../src/ledger/command.ts';
import { Writer as ShippedWriter } from '../../src/store/sqlite/writer/writer.ts';
import type { Written } from '../../src/store/sqlite/writer/written.ts';

export * from '../../src/store/sqlite/writer/writer.ts';

const { BATCH_RECORD: record, WEAKENED_WRITER: weakness } = process.env;
const descriptor = record ? openSync(record, 'a') : null;

export class Writer extends ShippedWriter {
  override write(commands: readonly Command[]): Written {
    const additions = commands.flatMap((command) => (command.kind === 'add' ? Number(command.note) : []));
    if (descriptor !== null) writeSync(descriptor, `${JSON.stringify(additions)}\n`);
    return weakness === 'halves' ? this.#writeHalves(commands) : super.write(commands);
  }

  #writeHalves(commands: readonly Command[]): Written {
    const half = Math.ceil(commands.length / 2);
    const [first, second] = [super.write(commands.slice(0, half)), super.write(commands.slice(half))];
    return {
      outcomes: [...first.outcomes, ...second.outcomes],
      latestPostings: [...first.latestPostings, ...second.latestPostings],
      rotations: first.rotations + second.rotations,
    };
  }
}
