// Measures how the cost of a request grows with the number of end users, open cycles and past transactions.

import { inTurn } from '../in-turn.ts';
import type { Row } from '../results.ts';
import { assertWhole, type Subject } from '../subjects.ts';
import * as workloads from '../workload.ts';
import { type Part, WARM_UP } from './part.ts';

const CONNECTIONS = 64;
const ROUNDS_MAX = 3;
/** In a process that has already served requests, a warm-up of one block is enough to fill the caches. */
const ONE_BLOCK = { requestsMin: 0, secondsMax: 1 };
const BESIDE = [
  workloads.TEN_CYCLES,
  workloads.FIFTY_CYCLES,
  workloads.THOUSAND_CYCLES,
  workloads.SHORT_HISTORY,
  workloads.LONG_HISTORY,
];
/**
 * The workloads in each list are measured in the same rounds. The first workload in each list is the baseline of the
 * list, except that `targets.ts` compares `SUBTRACT_LONG_HISTORY` with `HOT_USER`.
 */
const SHAPES = [
  [workloads.SUBTRACT_SMALL, workloads.HOT_USER, workloads.SUBTRACT_KEYED, workloads.MIX],
  [
    workloads.SUBTRACT_ONE_CYCLE,
    workloads.SUBTRACT_FIFTY_CYCLES,
    workloads.SUBTRACT_THOUSAND_CYCLES,
    workloads.SUBTRACT_LONG_HISTORY,
  ],
  [workloads.BALANCE_ONE_CYCLE, workloads.BALANCE_TEN_CYCLES, workloads.BALANCE_THOUSAND_CYCLES],
  [workloads.PAGE_SHORT_HISTORY, workloads.PAGE_LONG_HISTORY],
];

const users: Part = {
  name: 'users',
  title: 'Cost of a request by the number of end users',
  async run(subjects, settings) {
    const servers: Subject[] = [];
    const files: string[] = [];
    for (const [name, crowd] of Object.entries({
      small: workloads.CROWD_SMALL,
      medium: workloads.CROWD_MEDIUM,
      large: workloads.CROWD_LARGE,
    })) {
      const { file, secret } = await subjects.seed(name, [crowd]);
      servers.push(await subjects.scripOnSqlite(file, secret));
      files.push(file);
    }
    const [small, medium, large] = servers as [Subject, Subject, Subject];
    const contests = [
      { subject: small, workload: workloads.SUBTRACT_SMALL },
      { subject: medium, workload: workloads.SUBTRACT_MEDIUM },
      { subject: large, workload: workloads.SUBTRACT_LARGE },
      { subject: small, workload: workloads.BALANCE_SMALL },
      { subject: large, workload: workloads.BALANCE_LARGE },
    ];
    const connections = settings.connections ?? CONNECTIONS;
    const rounds = Math.min(ROUNDS_MAX, settings.rounds);
    const rows = await inTurn(contests, { ...settings, rounds, connections, warmUp: WARM_UP });
    for (const server of servers) await subjects.end(server);
    await assertWhole(files[0] as string);
    return { rows, figures: [] };
  },
};

const shapes: Part = {
  name: 'shapes',
  title: "Cost of a request by the end user's cycles and transactions",
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('small', [workloads.CROWD_SMALL, ...BESIDE]);
    const subject = await subjects.scripOnSqlite(file, secret);
    const connections = settings.connections ?? CONNECTIONS;
    const rounds = Math.min(ROUNDS_MAX, settings.rounds);
    const rows: Row[] = [];
    for (const [index, group] of SHAPES.entries()) {
      const warmUp = index === 0 ? WARM_UP : ONE_BLOCK;
      const contests = group.map((workload) => ({ subject, workload }));
      rows.push(...(await inTurn(contests, { ...settings, rounds, connections, warmUp })));
    }
    await subjects.end(subject);
    await assertWhole(file);
    return { rows, figures: [] };
  },
};

export const growth: readonly Part[] = [users, shapes];
