import type { Connection, Message } from './internals.ts';

export interface Filter {
  /** Whether events need a look. Rows of the application are most of what arrives. */
  readonly isIdle: () => boolean;
  /** Takes each message of the server once, in order. True: it is dropped. */
  readonly takes: (event: string, message: Message) => boolean;
  /** The connection is about to report its end. */
  readonly ended: () => void;
  /** Passes an event on. */
  readonly pass: (event: string | symbol, go: (...values: unknown[]) => boolean, values: unknown[]) => boolean;
}

/** Puts a filter between a connection's socket and its client. */
export function filterMessages(connection: Connection, { isIdle, takes, ended, pass }: Filter): void {
  const emit = connection.emit;
  // pg emits each message twice where somebody listens to `message`: first as that, then under its own name.
  let isAnnounced = false;
  let isDropped = false;
  Object.defineProperty(connection, 'emit', {
    configurable: true,
    writable: true,
    value: (event: string | symbol, ...values: unknown[]): boolean => {
      if (event === 'dataRow' && isIdle()) {
        isAnnounced = false;
        return emit.call(connection, event, values[0]);
      }
      const [message = {}] = values as Message[];
      const go = (...sent: unknown[]): boolean => Reflect.apply(emit, connection, [event, ...sent]);
      if (event === 'message') {
        const { name = '' } = message;
        isDropped = takes(name === 'error' ? 'errorMessage' : name, message);
        const hasListened = !isDropped && pass(event, go, values);
        isAnnounced = true;
        return hasListened;
      }
      if (!isAnnounced) isDropped = typeof event === 'string' && takes(event, message);
      isAnnounced = false;
      if (isDropped) return false;
      if (event === 'end' || event === 'error') ended();
      return pass(event, go, values);
    },
  });
}
