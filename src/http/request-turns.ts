import type { HttpServer } from './http-server-type.ts';

/** Milliseconds after which a turn of the event loop begins no further request. */
const maxTurn = 8;

/**
 * Lets a turn of the event loop begin only so many requests as it has time for; the others begin in the next turns, in the
 * order in which they came. Without that, the loop would begin and answer in one turn all requests that have arrived, be
 * they hundreds. To be called before any other hook is added.
 */
export function beginRequestsInTurns(app: HttpServer): void {
  const waiting: (() => void)[] = [];
  let begun: number | undefined;

  function beginTurn(): number {
    const now = performance.now();
    begun = now;
    setImmediate(() => {
      if (begun === now) begun = undefined;
    });
    return now;
  }

  const isOver = () => performance.now() - (begun ?? beginTurn()) >= maxTurn;

  function beginWaiting(): void {
    beginTurn();
    beginNext();
  }

  function beginNext(): void {
    waiting.shift()?.();
    if (waiting.length === 0) return;
    // What the request does at once counts too: it is done before the next tick.
    if (isOver()) setImmediate(beginWaiting);
    else process.nextTick(beginNext);
  }

  app.addHook('onRequest', (_request, _reply, done) => {
    if (waiting.length === 0 && !isOver()) {
      done();
      return;
    }
    waiting.push(done);
    if (waiting.length === 1) setImmediate(beginWaiting);
  });
}
