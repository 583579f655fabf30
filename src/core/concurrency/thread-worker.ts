import { parentPort } from 'node:worker_threads';

/** What a worker sends: once that it has started, then a reply to each request. */
export type ThreadMessage<Reply> = 'started' | { readonly reply: Reply };

/** Answers the requests of a `Thread`. The file of a worker calls it once, after it has loaded what it needs. */
export function answerRequests<Request, Reply>(answer: (request: Request) => Reply | Promise<Reply>): void {
  const send = (message: ThreadMessage<Reply>) => parentPort?.postMessage(message);
  parentPort?.on('message', async (request: Request) => send({ reply: await answer(request) }));
  // A request that cannot be read gets no answer, so the thread ends.
  parentPort?.on('messageerror', (error) => {
    throw error;
  });
  send('started');
}
