// Measures the latency of a subtraction when requests are due at a fixed rate, however fast the server responds.

import { closedLoop } from '../closed-loop.ts';
import { inTurnAtRate } from '../in-turn.ts';
import type { Row } from '../results.ts';
import type { Subject } from '../subjects.ts';
import { CROWD_MEDIUM, SUBTRACT_MEDIUM } from '../workload.ts';
import type { Part } from './part.ts';

const CONNECTIONS = 64;
const WARM_UP_SECONDS = 10;
const RATES = [1_000, 2_000, 5_000, 10_000, 20_000];
/** At rates above this share of the closed-loop throughput, the queue could grow without limit. */
const SHARE_MAX = 0.8;

export const latency: Part = {
  name: 'latency',
  title: 'Latency of a subtraction at fixed rates, measured from its due time',
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const all = [
      await subjects.echo(),
      await subjects.scripOnSqlite(file, secret),
      await subjects.scripOnPostgres([CROWD_MEDIUM]),
      await subjects.handWritten(CROWD_MEDIUM),
    ];
    const connections = settings.connections ?? CONNECTIONS;
    const most = new Map<Subject, number>();
    for (const subject of all) {
      const { requests, seconds } = await closedLoop(subject, SUBTRACT_MEDIUM, {
        connections,
        seconds: WARM_UP_SECONDS,
      });
      most.set(subject, requests / seconds);
    }
    const rows: Row[] = [];
    for (const rate of RATES) {
      const able = all.filter((subject) => rate <= SHARE_MAX * (most.get(subject) ?? 0));
      const contests = able.map((subject) => ({ subject, workload: SUBTRACT_MEDIUM }));
      rows.push(
        ...(await inTurnAtRate(contests, { ...settings, rounds: Math.min(2, settings.rounds), connections, rate })),
      );
    }
    return { rows, figures: [] };
  },
};
