// A part of the benchmark that can be measured separately, in a few minutes at most.

import type { WarmUp } from '../in-turn.ts';
import type { Figure, Row } from '../results.ts';
import type { Subjects } from '../subjects.ts';

export interface PartSettings {
  readonly rounds: number;
  readonly seconds: number;
  /** Null for the part's default. */
  readonly connections: number | null;
}

export interface Part {
  readonly name: string;
  readonly title: string;
  /** The caller stops the subjects that are still running. */
  run(subjects: Subjects, settings: PartSettings): Promise<{ rows: readonly Row[]; figures: readonly Figure[] }>;
}

/**
 * The hand-written service on PostgreSQL does not reach `requestsMin` requests, so its warm-up ends after `secondsMax`.
 */
export const WARM_UP: WarmUp = { requestsMin: 300_000, secondsMax: 60 };
