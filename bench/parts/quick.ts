// Measures, in about a minute, the workloads that a code change is most likely to slow down. `guard.ts` compares their
// ratios with the baseline.

import { inTurn } from '../in-turn.ts';
import { assertWhole } from '../subjects.ts';
import { BALANCE_SMALL, CROWD_SMALL, SUBTRACT_KEYED, SUBTRACT_SMALL, type Workload } from '../workload.ts';
import type { Part } from './part.ts';

const CONNECTIONS = 64;
const ONE_BLOCK = { requestsMin: 0, secondsMax: 1 };
const ADD_SMALL: Workload = { name: 'add, 10,000 users', group: CROWD_SMALL, shares: { add: 100 } };

export const quick: Part = {
  name: 'quick',
  title: 'A quick look at the ratios, 10,000 end users',
  async run(subjects, settings) {
    const connections = settings.connections ?? CONNECTIONS;
    const { file, secret } = await subjects.seed('small', [CROWD_SMALL]);
    const scrip = await subjects.scripOnSqlite(file, secret);
    const contests = [
      { subject: await subjects.echo(), workload: SUBTRACT_SMALL },
      { subject: scrip, workload: SUBTRACT_SMALL },
      { subject: scrip, workload: SUBTRACT_KEYED },
      { subject: scrip, workload: BALANCE_SMALL },
      { subject: await subjects.scripOnPostgres([CROWD_SMALL]), workload: SUBTRACT_SMALL },
      { subject: await subjects.handWritten(CROWD_SMALL), workload: SUBTRACT_SMALL },
    ];
    const rows = await inTurn(contests, { ...settings, connections, warmUp: ONE_BLOCK });
    // Additions come last, since they give each end user more cycles.
    rows.push(...(await inTurn([{ subject: scrip, workload: ADD_SMALL }], { ...settings, connections, warmUp: null })));
    await subjects.end(scrip);
    await assertWhole(file);
    return { rows, figures: [] };
  },
};
