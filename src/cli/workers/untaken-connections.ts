import type { ChildProcess } from 'node:child_process';

interface Connection {
  close(): void;
}

type PassingOn = Pick<ChildProcess, 'send'> & { once(event: 'exit', listener: () => void): unknown };

/**
 * Closes the connection that was sent to a worker and not accepted, when the worker dies or the returned function is
 * called. Node's cluster module would keep it open for ever while its client waits, also if the worker had closed its
 * port before. Accepted connections are already closed in this process.
 *
 * Node may learn of the death before it learns that the channel is closed, and send one more connection in between,
 * which is closed at once.
 */
export function closeUntakenConnections(worker: PassingOn): () => void {
  /** The last one for each port: Node sends the next once the worker has accepted it. */
  const passedOn = new Map<string, Connection>();
  let isDead = false;
  const send = worker.send.bind(worker);
  const noteAndSend = (...args: Parameters<typeof send>) => {
    const [message, handle] = args;
    const port = portOfNewConnection(message);
    if (port !== undefined && isConnection(handle)) {
      passedOn.set(port, handle);
      if (isDead) handle.close();
    }
    return isDead ? false : send(...args);
  };
  Object.assign(worker, { send: noteAndSend });
  const close = () => {
    for (const connection of passedOn.values()) connection.close();
  };
  worker.once('exit', () => {
    isDead = true;
    close();
  });
  return close;
}

/** The cluster module's key for the port of a new connection; undefined for any other message. */
function portOfNewConnection(message: unknown): string | undefined {
  if (typeof message !== 'object' || message === null || !('act' in message) || message.act !== 'newconn')
    return undefined;
  return 'key' in message && typeof message.key === 'string' ? message.key : undefined;
}

function isConnection(handle: unknown): handle is Connection {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
