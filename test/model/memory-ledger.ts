// An in-memory ledger on the simulated store, without faults.

import type { Instant } from '../../src/ledger/instant.ts';
import type { EventLog } from '../../src/store/event-log.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import type { Stores } from '../../src/store/stores.ts';
import type { LedgerTools } from '../../src/store/tools/ledger-tools.ts';
import { TotalsSum } from '../../src/store/totals.ts';
import type { Chance } from '../simulation/chance.ts';
import { Disk } from '../simulation/disk.ts';
import { findingsOf } from '../simulation/disk-audit.ts';
import type { Faults } from '../simulation/faults.ts';
import { SimulatedStore, type StoreOptions } from '../simulation/simulated-store.ts';
import type { VirtualTime } from '../simulation/virtual-time.ts';
import type { NewLedger } from '../store/test-ledger.ts';

const IN_ORDER = { now: 0, after: (_: number, act: () => void) => queueMicrotask(act) } as unknown as VirtualTime;
const WITHOUT_CHANCE = { delay: () => 0, happens: () => false } as unknown as Chance;
const WITHOUT_FAULTS = { strikes: () => false } as unknown as Faults;

const OPTIONS: StoreOptions = {
  time: IN_ORDER,
  chance: WITHOUT_CHANCE,
  faults: WITHOUT_FAULTS,
  witness: { committed() {}, read() {}, expired() {} },
  lanes: { count: 1, atOnce: 1, of: () => 0 },
  eventsMax: 1_000,
  pageMax: 1_000,
  loadsAllHolds: false,
  passTimeOf() {},
  crash() {},
};

export function newMemoryLedger(Store: typeof SimulatedStore = SimulatedStore): NewLedger {
  class MemoryStore extends Store {
    isFailing = false;

    protected override async commit(...write: Parameters<SimulatedStore['commit']>) {
      if (this.isFailing) throw new StoreFault('OutcomeUnknown', 'the test makes commits fail');
      return super.commit(...write);
    }
  }
  return async (wall) => {
    const disk = diskOf(wall);
    let store = new MemoryStore(disk, { isAlive: true }, OPTIONS);
    return {
      async open() {
        disk.tick();
        store = new MemoryStore(disk, { isAlive: true }, OPTIONS);
        const events = { deriveNext: async () => false } as Partial<EventLog> as EventLog;
        return { ledger: store, events } as Partial<Stores> as Stores;
      },
      async openTools() {
        return {
          audit: async (report) => auditOf(disk, report),
          close: async () => {},
        } as Partial<LedgerTools> as LedgerTools;
      },
      async failCommits(isFailing) {
        store.isFailing = isFailing;
      },
      async remove() {},
    };
  };
}

function diskOf(wall: () => Instant): Disk {
  let tail = 0;
  // The last 12 digits of transaction IDs are unique, but do not ascend in the order of creation.
  return new Disk(wall, () => ((++tail * 0x9e3779b1) % 2 ** 32).toString(16).padStart(12, '0'));
}

function auditOf(disk: Disk, report: Parameters<LedgerTools['audit']>[0]) {
  for (const rows of disk.users.values()) for (const finding of findingsOf(rows, disk)) report(finding);
  const uncounted = new TotalsSum();
  for (const posting of disk.feed.slice(0, disk.consumed)) uncounted.add(posting);
  uncounted.subtract(disk.totals.totals());
  return { endUsers: disk.users.size, postings: disk.feed.length, store: uncounted.faults() };
}
