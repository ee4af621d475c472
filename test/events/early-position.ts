// Replaces the delivery queue of an endpoint with a queue that is broken on purpose: the queue returns a position after
// all events that were read, even if some of these events are not delivered yet.

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
