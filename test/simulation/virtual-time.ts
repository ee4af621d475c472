// Time that passes only when the simulation says so. Everything that waits is an event in one queue. Between two events
// all promises that can continue have continued, so that the order of everything follows from the seed. During a
// simulation, it replaces the timers, clocks and random numbers of JavaScript.

import assert from 'node:assert/strict';

const realImmediate = globalThis.setImmediate;

/**
 * Runs everything that `process.nextTick` and promises have queued, as Node does between two turns of its event loop. A
 * real turn costs several times as much as what happens in it.
 */
const { _tickCallback: letGoOn } = process as unknown as { _tickCallback: () => void };

/** Events that end with their owner: a process that crashes never gets to them. */
export interface Owner {
  isAlive: boolean;
}

export interface Event {
  at: number;
  readonly order: number;
  readonly owner: Owner | null;
  act: (() => void) | null;
}

/** Milliseconds that a turn of an event loop takes at most. */
const TURN_MS = 0.05;

export class VirtualTime {
  /** Milliseconds since the beginning. It never jumps; the wall clock does that. */
  now = 0;
  /** The owner of the running event, and so of everything that it begins. */
  owner: Owner | null = null;
  readonly #share: () => number;
  readonly #heap: Event[] = [];
  #order = 0;

  constructor(share: () => number) {
    this.#share = share;
  }

  after(ms: number, act: () => void, owner: Owner | null = this.owner): Event {
    const event: Event = { at: this.now + ms, order: this.#order++, owner, act };
    this.#push(event);
    return event;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Calls it in the next turn of the event loop of the calling process. */
  soon(act: () => void): Event {
    return this.after(this.#share() * TURN_MS, act);
  }

  every(ms: number, act: () => void): Event {
    const event: Event = { at: this.now + ms, order: this.#order++, owner: this.owner, act: null };
    // Assigned to a name first: V8 takes a function that is written into a property for a method, which it keeps.
    const again = () => {
      event.at = this.now + ms;
      this.#push(event);
      act();
    };
    event.act = again;
    this.#push(event);
    return event;
  }

  /** Advances time until `isOver`, or until no event is left. */
  passUntil(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      // Promises continue only outside of them: in a turn of its own, not in the calling function.
      realImmediate(() => {
        try {
          this.#pass(isOver);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #pass(isOver: () => boolean): void {
    while (!isOver()) {
      const event = this.#pop();
      if (event === undefined) return;
      const { act, owner } = event;
      if (act === null || owner?.isAlive === false) continue;
      this.now = event.at;
      this.owner = owner;
      act();
      letGoOn();
      this.owner = null;
    }
  }

  /** Replaces the real time and random numbers. @returns a function that restores them */
  takeOver(wall: () => number): () => void {
    const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate } = globalThis;
    const { now: dateNow } = Date;
    const { random } = Math;
    const { now: performanceNow } = performance;
    inPlace = { time: this, wall, share: this.#share };
    Object.assign(globalThis, TIMERS);
    Date.now = wallNow;
    Math.random = share;
    performance.now = now;
    return () => {
      inPlace = null;
      Object.assign(globalThis, { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate });
      Date.now = dateNow;
      Math.random = random;
      performance.now = performanceNow;
    };
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[place] = heap[parent] as Event;
      place = parent;
    }
    heap[place] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[place] = heap[child] as Event;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

interface InPlace {
  readonly time: VirtualTime;
  readonly wall: () => number;
  readonly share: () => number;
}

/**
 * The replacements are the same functions for every seed, so that nothing that outlives a seed refers to it: a quick
 * garbage collection would then find all of it in use.
 */
let inPlace: InPlace | null = null;

function current(): InPlace {
  assert(inPlace !== null, 'a simulation runs');
  return inPlace;
}

const clear = (event: Event | undefined) => {
  if (event) event.act = null;
};
const TIMERS = {
  setTimeout: (act: () => void, ms = 0) => current().time.after(ms, act),
  setInterval: (act: () => void, ms = 0) => current().time.every(ms, act),
  setImmediate: (act: () => void) => current().time.soon(act),
  clearTimeout: clear,
  clearInterval: clear,
  clearImmediate: clear,
};
const wallNow = () => Math.floor(current().wall());
const share = () => current().share();
const now = () => current().time.now;

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
