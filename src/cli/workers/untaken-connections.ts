import type { ChildProcess } from 'node:child_process';

interface Connection {
  close(): void;
}

type PassingOn = Pick<ChildProcess, 'send'> & { once(event: 'exit', listener: () => void): unknown };

/**
 * Closes, when a worker dies or when the returned function is called, the connection that was on its way to it. Node's
 * cluster module would keep it open for ever, and its client would wait for as long: also where the worker has closed its
 * port before the connection came. A connection that the worker has taken is closed already in this process.
 *
 * Node may learn of the death before it learns that the channel is closed, and passes on one more connection between the two.
 * That one is closed at once.
 */
export function closeUntakenConnections(worker: PassingOn): () => void {
  /** The last one for each port: the next one is passed on once the worker has taken it. */
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

/** The key by which the cluster module names the port of a connection; undefined for every other message. */
function portOfNewConnection(message: unknown): string | undefined {
  if (typeof message !== 'object' || message === null || !('act' in message) || message.act !== 'newconn')
    return undefined;
  return 'key' in message && typeof message.key === 'string' ? message.key : undefined;
}

function isConnection(handle: unknown): handle is Connection {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
