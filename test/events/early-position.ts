// A delivery queue that is broken on purpose: it reports events as delivered as soon as it has read them from the event
// log.

import { DeliveryQueue as ShippedQueue } from '../../src/events/webhooks/delivery-queue.ts';
import type { EventPosition } from '../../src/store/event-log.ts';

export * from '../../src/events/webhooks/delivery-queue.ts';

export class DeliveryQueue extends ShippedQueue {
  #readTo: EventPosition;

  constructor(position: EventPosition) {
    super(position);
    this.#readTo = position;
  }

  override addPageEnd(position: EventPosition): void {
    this.#readTo = position;
    super.addPageEnd(position);
  }

  override passed(): ReturnType<ShippedQueue['passed']> {
    return { position: this.#readTo, events: [] };
  }
}
