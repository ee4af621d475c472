// Compares Scrip on SQLite with the echo server, in warm processes and in the first seconds of new processes.

import { diskSpeed } from '../disk-speed.ts';
import { fromStart, inTurn } from '../in-turn.ts';
import type { Row } from '../results.ts';
import { assertWhole } from '../subjects.ts';
import { ADD_MEDIUM, BALANCE_MEDIUM, BALANCE_REPEATED, CROWD_MEDIUM, SUBTRACT_MEDIUM } from '../workload.ts';
import { type Part, WARM_UP } from './part.ts';

const CONNECTIONS = [64, 256];
const FIRST_SECONDS = 5;
const FRESH_PROCESSES = 3;
/** Additions come last, since they give each end user more cycles. */
const WORKLOADS = [BALANCE_MEDIUM, SUBTRACT_MEDIUM, ADD_MEDIUM];

const settledAt = (connections: number): Part => ({
  name: `settled-${connections}`,
  title: `Warm processes, 100,000 end users, ${connections} connections`,
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const [echo, scrip] = [await subjects.echo(), await subjects.scripOnSqlite(file, secret)];
    const disk = diskSpeed('before');
    const rows: Row[] = [];
    for (const workload of [BALANCE_REPEATED, ...WORKLOADS]) {
      const contests = [echo, scrip].map((subject) => ({ subject, workload }));
      const blocks = { ...settings, connections: settings.connections ?? connections };
      rows.push(...(await inTurn(contests, { ...blocks, warmUp: WARM_UP })));
    }
    await subjects.end(scrip);
    await assertWhole(file);
    return { rows, figures: disk };
  },
});

const firstSeconds: Part = {
  name: 'first-seconds',
  title: `The first ${FIRST_SECONDS} seconds of a process, 100,000 end users`,
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const rows: Row[] = [];
    const rounds = Math.min(FRESH_PROCESSES, settings.rounds);
    for (const workload of WORKLOADS)
      for (const connections of settings.connections === null ? CONNECTIONS : [settings.connections]) {
        const contests = [
          { workload, start: () => subjects.echo() },
          { workload, start: () => subjects.scripOnSqlite(file, secret) },
        ];
        const blocks = { connections, rounds, seconds: FIRST_SECONDS };
        rows.push(...(await fromStart(contests, blocks, (subject) => subjects.end(subject))));
      }
    await assertWhole(file);
    return { rows, figures: [] };
  },
};

export const sqlite: readonly Part[] = [...CONNECTIONS.map(settledAt), firstSeconds];
