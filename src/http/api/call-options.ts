// What the routes of the API calls have in common.

import type { GroupCommit } from '../../batching/group-commit.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { TestClock } from '../../store/test-clock.ts';
import type { Admission } from '../admission/admit.ts';
import type { FairShare } from '../admission/fair-share.ts';
import type { PageQueue } from '../admission/page-queue.ts';

export interface CallOptions extends Admission {
  readonly ledger: LedgerStore;
  readonly commit: GroupCommit;
  readonly events: EventLog;
  /** Null or absent if the ledger has no test clock. */
  readonly testClock?: TestClock | null;
  readonly pages: PageQueue;
  /** The bytes of large responses that are not sent yet. */
  readonly unsent: FairShare;
}
