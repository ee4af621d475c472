// A part of the benchmark: what can be measured by itself, in a few minutes at most.

import type { Figure, Row } from '../results.ts';
import type { Subjects } from '../subjects.ts';

export interface PartSettings {
  readonly rounds: number;
  readonly seconds: number;
  /** Null for the rows that the part itself is about. */
  readonly connections: number | null;
}

export interface Part {
  readonly name: string;
  /** What it measures, as the title of its table. */
  readonly title: string;
  /** @param subjects ended by the caller */
  run(subjects: Subjects, settings: PartSettings): Promise<{ rows: readonly Row[]; figures: readonly Figure[] }>;
}

export const WARM_UP_SECONDS = 2;
