// Measures subtractions over 100,000 end users, on Scrip and on the systems that it is compared to.

import { diskSpeed } from '../disk-speed.ts';
import { inTurn } from '../in-turn.ts';
import { assertWhole } from '../subjects.ts';
import { CROWD_MEDIUM, SUBTRACT_MEDIUM } from '../workload.ts';
import { type Part, WARM_UP } from './part.ts';

const peersAt = (connections: number): Part => ({
  name: `peers-${connections}`,
  title: `Subtractions over 100,000 end users, ${connections} connections`,
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const scrip = await subjects.scripOnSqlite(file, secret);
    const redis = [await subjects.redis('everysec', CROWD_MEDIUM), await subjects.redis('always', CROWD_MEDIUM)];
    const all = [
      await subjects.echo(),
      await subjects.plainEcho(),
      scrip,
      await subjects.scripOnPostgres([CROWD_MEDIUM]),
      await subjects.handWritten(CROWD_MEDIUM),
      ...redis.filter((each) => each !== null),
    ];
    const contests = all.map((subject) => ({ subject, workload: SUBTRACT_MEDIUM }));
    const rounds = { ...settings, connections: settings.connections ?? connections, warmUp: WARM_UP };
    const disk = diskSpeed('before');
    const rows = await inTurn(contests, rounds);
    await subjects.end(scrip);
    await assertWhole(file);
    return { rows, figures: disk };
  },
});

export const peers: readonly Part[] = [peersAt(64), peersAt(256)];
