// Parses the output of `strace -f -y -xx -s …`. If calls of two threads overlap, strace splits the first call into two
// lines, `<unfinished ...>` and `<... resumed>`.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

export const TRACED =
  'openat,open,creat,close,dup,dup2,dup3,write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile,splice,' +
  'fsync,fdatasync,sync,syncfs,sync_file_range,truncate,ftruncate,fallocate,' +
  'rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat';

/** strace cuts off longer buffers, and the parser rejects them. */
export const TRACED_BYTES_MAX = 131_072;

export interface Call {
  readonly name: string;
  /** The arguments as strace prints them, but with decoded paths, and with `""` instead of each string. */
  readonly args: string;
  readonly strings: readonly Buffer[];
}

export type TracePart =
  | { readonly part: 'begin'; readonly thread: string; readonly call: Call }
  | {
      readonly part: 'end';
      readonly thread: string;
      readonly call: Call;
      readonly result: number;
      readonly from: string;
    };

const LINE = /^(\d+) +(.*)$/s;
const RESUMED = /^<\.\.\. (\w+) resumed>(.*)$/s;
const WHOLE = /^(\w+)\((.*)\) += (-?\d+)(.*)$/s;
const BEGUN = /^(\w+)\((.*?) ?<unfinished \.\.\.>$/s;

export async function* readTrace(file: string): AsyncGenerator<TracePart> {
  const begun = new Map<string, { call: Call; text: string }>();
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const [, thread = '', text = ''] = LINE.exec(line) ?? [];
    if (thread === '' || text.startsWith('+++') || text.startsWith('---')) continue;
    const resumed = RESUMED.exec(text);
    if (resumed) {
      const before = begun.get(thread);
      begun.delete(thread);
      const whole = before && WHOLE.exec(`${before.text}${resumed[2]}`);
      if (before && whole) yield { part: 'end', thread, call: before.call, result: Number(whole[3]), from: line };
      continue;
    }
    const unfinished = BEGUN.exec(text);
    if (unfinished) {
      const call = callOf(unfinished[1] as string, unfinished[2] as string);
      begun.set(thread, { call, text: `${unfinished[1]}(${unfinished[2]}` });
      yield { part: 'begin', thread, call };
      continue;
    }
    const whole = WHOLE.exec(text);
    if (!whole) continue;
    const call = callOf(whole[1] as string, whole[2] as string);
    yield { part: 'begin', thread, call };
    yield { part: 'end', thread, call, result: Number(whole[3]), from: line };
  }
}

function callOf(name: string, text: string): Call {
  const strings: Buffer[] = [];
  const args = text.replace(/"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/g, (_, hex: string, cut?: string) => {
    if (cut) throw new Error(`strace cut off a buffer of ${name}`);
    strings.push(bytesOf(hex));
    return '""';
  });
  return { name, args: args.replace(/<((?:\\x[0-9a-f]{2})+)>/g, (_, hex: string) => `<${bytesOf(hex)}>`), strings };
}

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.replaceAll('\\x', ''), 'hex');
}
