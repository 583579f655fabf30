import { parentPort } from 'node:worker_threads';
import { Thread, ThreadLost } from '../../../src/core/fairness/thread.ts';
import { nestedLists } from './nested-lists.ts';

/**
 * Sends a thread of its own what is too deep for it, and tells what became of it. This one is started with a larger
 * stack.
 */
const thread = new Thread<object, unknown>(new URL('./levels-worker.ts', import.meta.url), { memory: 64 });
const outcome = await thread.ask({ levels: 1, sent: nestedLists(100_000) }).catch((error: unknown) => error);
parentPort?.postMessage({ isLost: outcome instanceof ThreadLost, hasEnded: thread.ended });
