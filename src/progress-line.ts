// What long commands say: how far they have come, as a bar on a terminal, which is drawn over itself, and elsewhere a
// line now and then; and in the end how much it was.

export interface Progress {
  readonly step: string;
  readonly done: number;
  /** Of how many. */
  readonly total: number;
  readonly unit: string;
}

const BAR_WIDTH = 30;
const TERMINAL_EVERY_MS = 100;
const LOG_EVERY_MS = 5_000;

export class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  #shownAt = Number.NEGATIVE_INFINITY;
  #step = '';

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  show(progress: Progress): void {
    const everyMs = this.#stream.isTTY ? TERMINAL_EVERY_MS : LOG_EVERY_MS;
    const now = performance.now();
    if (progress.step === this.#step && progress.done < progress.total && now - this.#shownAt < everyMs) return;
    this.#shownAt = now;
    this.#step = progress.step;
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[K${bar(progress)} ${text(progress)}` : `${text(progress)}\n`);
  }

  end(): void {
    if (this.#stream.isTTY && this.#step !== '') this.#stream.write('\n');
  }
}

/** `1 posting`, `2 postings`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

function bar({ done, total }: Progress): string {
  const full = Math.round(share(done, total) * BAR_WIDTH);
  return `[${'='.repeat(full)}${' '.repeat(BAR_WIDTH - full)}]`;
}

function text({ step, done, total, unit }: Progress): string {
  return `${step}: ${done} of ${total} ${unit}, ${Math.floor(100 * share(done, total))} %`;
}

function share(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, done / total);
}
