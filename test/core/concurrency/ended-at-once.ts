import { parentPort } from 'node:worker_threads';
import { Thread } from '../../../src/core/concurrency/thread.ts';

/** Ends a thread that has a request, while nothing else keeps this one alive. */
const thread = new Thread<object, unknown>(new URL('./levels-worker.ts', import.meta.url), { memory: 64 });
const asked = thread.ask({ levels: 1 }).catch(() => undefined);
await thread.end();
await asked;
parentPort?.postMessage('ended');
