// A part of the benchmark that can be measured separately, in a few minutes at most.

import type { WarmUp } from '../in-turn.ts';
import type { Figure, Row } from '../results.ts';
import type { Subjects } from '../subjects.ts';

export interface PartSettings {
  readonly rounds: number;
  readonly seconds: number;
  /** The number of connections; null for the default of the part. */
  readonly connections: number | null;
}

export interface Part {
  readonly name: string;
  readonly title: string;
  /** @param subjects starts the subjects; the caller of `run` stops them afterwards */
  run(subjects: Subjects, settings: PartSettings): Promise<{ rows: readonly Row[]; figures: readonly Figure[] }>;
}

/** The hand-written service on PostgreSQL does not reach `requestsMin` within `secondsMax`. */
export const WARM_UP: WarmUp = { requestsMin: 300_000, secondsMax: 60 };
