// A part of the benchmark: what can be measured by itself, in one piece of a few minutes at most.

import type { Figure, Row } from '../results.ts';
import type { Subjects } from '../subjects.ts';

export interface PartSettings {
  readonly rounds: number;
  readonly seconds: number;
  /** Null: what the part itself is for. */
  readonly connections: number | null;
}

export interface Part {
  readonly name: string;
  /** What it finds out, as the title of its table. */
  readonly title: string;
  /** @param subjects ended by the caller */
  run(subjects: Subjects, settings: PartSettings): Promise<{ rows: readonly Row[]; figures: readonly Figure[] }>;
}

export const WARM_UP_SECONDS = 2;
