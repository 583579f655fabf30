import { ThreadLost, threadFile } from '../../core/concurrency/thread.ts';
import { defaultThreads, ThreadPool } from '../../core/concurrency/thread-pool.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { ThreadBodyReply, ThreadBodyRequest } from './body-worker.ts';
import type { ReadBody } from './read-body.ts';

/** Milliseconds of a thread for one body. */
export const maxBodyTime = 30_000;
/** At least two, because one tenant may have half of the threads: the others then still have one. */
export const minThreads = 2;
/** MiB of heap of a thread. */
const memory = 512;

/** Reads bodies in threads, so that no other request waits for it. Tenants take turns. */
export class BodyReader {
  readonly #threads: ThreadPool<ThreadBodyRequest, ThreadBodyReply>;
  readonly #mapping: string | undefined;

  /** `mapping` is the text of the mapping's file. */
  constructor(mapping: string | undefined, threads = defaultThreads(minThreads)) {
    this.#mapping = mapping;
    this.#threads = new ThreadPool({
      file: threadFile(import.meta.url, 'body-worker'),
      threads,
      memory,
      name: 'bodies of changes at work',
    });
  }

  /**
   * Reads a body. Returns `longer` where it has more bytes than were reserved for it. Throws AnnalsError where it is refused: 400, 413,
   * 429 or 503.
   */
  async read(request: Omit<ThreadBodyRequest, 'mapping'>): Promise<ReadBody | 'longer'> {
    const reply = await this.#threads
      .ask({ ...request, mapping: this.#mapping }, maxBodyTime)
      .catch((error: unknown) => {
        throw error instanceof ThreadLost ? notRead(error) : error;
      });
    if (!('refusal' in reply)) return reply;
    if (reply.refusal === 'longer') return 'longer';
    throw new AnnalsError(reply.refusal === 'tooLarge' ? 'payload_too_large' : 'validation_violation', reply.message);
  }

  async close(): Promise<void> {
    await this.#threads.close();
  }
}

/** The thread did not start in time on a busy machine, or the body took more time or memory than it may. */
function notRead(cause: ThreadLost): AnnalsError {
  const message = 'The request body could not be read in time. Send less at once, or try again later.';
  return new AnnalsError('service_unavailable', message, { headers: { 'Retry-After': '5' }, cause });
}
