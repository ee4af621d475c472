// Replaces JavaScript's timers, clocks and random numbers. Virtual time passes only when the simulation advances it.
// After each event, all ready promise callbacks run, so the seed determines the order of all steps.

import assert from 'node:assert/strict';

const realImmediate = globalThis.setImmediate;

/** Runs all ready promise callbacks. Waiting until the event loop runs them would take several times as long. */
const { _tickCallback: runQueuedCallbacks } = process as unknown as { _tickCallback: () => void };

/** After an owner has crashed, its events never run. */
export interface Owner {
  isAlive: boolean;
}

export interface Event {
  at: number;
  readonly order: number;
  readonly owner: Owner | null;
  act: (() => void) | null;
}

const TURN_MS = 0.05;

export class VirtualTime {
  /** Milliseconds since the beginning of the simulation. Unlike the wall clock, this time never jumps. */
  now = 0;
  /** The owner of the running event. Events that the running event schedules get the same owner by default. */
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

  soon(act: () => void): Event {
    return this.after(this.#share() * TURN_MS, act);
  }

  every(ms: number, act: () => void): Event {
    const event: Event = { at: this.now + ms, order: this.#order++, owner: this.owner, act: null };
    // Assign the function to a variable first: V8 keeps a function in memory if it is assigned directly to a property.
    const again = () => {
      event.at = this.now + ms;
      this.#push(event);
      act();
    };
    event.act = again;
    this.#push(event);
    return event;
  }

  passUntil(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      // Start in a real callback of the event loop: promise callbacks cannot run inside another promise callback.
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
      runQueuedCallbacks();
      this.owner = null;
    }
  }

  /** @returns a function that restores the real timers, clocks and random numbers */
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
 * The replacement functions read this variable each time. If they captured the object in a closure instead, minor
 * garbage collections could not free the memory of a seed.
 */
let inPlace: InPlace | null = null;

function current(): InPlace {
  assert(inPlace !== null, 'a simulation is running');
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
