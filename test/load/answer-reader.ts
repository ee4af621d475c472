// Parses HTTP responses, and rejects malformed responses. The parser must be fast, because a load generator shares the
// machine with the server.

export interface Answer {
  readonly status: number;
  readonly head: string;
  /** The body is decoded as Latin-1, so each character is one byte. */
  readonly body: string;
}

const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
const STATUS_LINE = /^HTTP\/1\.1 \d{3} /;

export class AnswerReader {
  wrong: string | null = null;
  #rest = '';
  readonly #onAnswer: (answer: Answer) => void;

  constructor(onAnswer: (answer: Answer) => void) {
    this.#onAnswer = onAnswer;
  }

  get rest(): string {
    return this.#rest;
  }

  push(chunk: Buffer): void {
    const text = this.#rest + chunk.toString('latin1');
    let at = 0;
    while (this.wrong === null) {
      const headEnd = text.indexOf('\r\n\r\n', at);
      if (headEnd === -1) break;
      const head = text.slice(at, headEnd);
      if (!STATUS_LINE.test(head)) {
        this.wrong = `a response begins with ${JSON.stringify(head.slice(0, 80))}`;
        break;
      }
      const status = Number(head.slice(9, 12));
      const body = status < 200 || status === 204 ? { text: '', end: headEnd + 4 } : bodyOf(text, head, headEnd + 4);
      if (body === null) break;
      at = body.end;
      this.#onAnswer({ status, head, body: body.text });
    }
    this.#rest = at === 0 ? text : text.slice(at);
  }
}

function bodyOf(text: string, head: string, start: number): { text: string; end: number } | null {
  if (CHUNKED.test(head)) return chunksOf(text, start);
  const end = start + Number(LENGTH.exec(head)?.[1] ?? 0);
  return end > text.length ? null : { text: text.slice(start, end), end };
}

function chunksOf(text: string, start: number): { text: string; end: number } | null {
  const parts: string[] = [];
  for (let at = start; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (text.length < end) return null;
    if (size === 0) return { text: parts.join(''), end };
    parts.push(text.slice(lineEnd + 2, end - 2));
    at = end;
  }
}
