// Limits the write queue in commands and in bytes, and gives each account a fair share of both.

import type { Command } from '../ledger/command.ts';
import { FairShare } from './fair-share.ts';

export interface QueueLimits {
  readonly commandsMax: number;
  readonly bytesMax: number;
}

/**
 * At 30,000 commands a second, 10,000 commands take a third of a second. A quick `Overloaded` is better for a client
 * than a longer wait.
 */
export const QUEUE_LIMITS: QueueLimits = { commandsMax: 10_000, bytesMax: 16 * 2 ** 20 };

/** Memory of a queued command, not counting its end user, actor and note. */
const COMMAND_BYTES = 256;
const CHARACTER_BYTES = 2;

export class QueueSpace {
  readonly #commands: FairShare;
  readonly #bytes: FairShare;

  constructor({ commandsMax, bytesMax }: QueueLimits) {
    this.#commands = new FairShare(commandsMax);
    this.#bytes = new FairShare(bytesMax);
  }

  get commands(): number {
    return this.#commands.total;
  }

  hasRoomFor(command: Command): boolean {
    const bytes = bytesOf(command);
    const { account } = command;
    // `settle` commands need no fair share: the renewal job itself limits how many of them are queued.
    if (command.kind === 'settle') return isLeft(this.#commands, 1) && isLeft(this.#bytes, bytes);
    return this.#commands.hasRoom(account, 1) && this.#bytes.hasRoom(account, bytes);
  }

  take(command: Command): void {
    this.#bytes.take(command.account, bytesOf(command));
    this.enqueue(command);
  }

  enqueue({ account }: Command): void {
    this.#commands.take(account, 1);
  }

  /** Called when a command leaves the queue to be written. The bytes of the command stay reserved until `release`. */
  dequeue({ account }: Command): void {
    this.#commands.release(account, 1);
  }

  /** Called when a command is answered. Releases its bytes. */
  release(command: Command): void {
    this.#bytes.release(command.account, bytesOf(command));
  }
}

function isLeft({ max, total }: FairShare, amount: number): boolean {
  return total + amount <= max;
}

function bytesOf(command: Command): number {
  const characters = command.kind === 'settle' ? 0 : command.actor.length + (command.note?.length ?? 0);
  return COMMAND_BYTES + CHARACTER_BYTES * (command.endUser.length + characters);
}
