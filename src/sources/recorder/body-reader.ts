import { AnnalsError } from '../../core/errors.ts';
import { ThreadLost } from '../../core/fairness/thread.ts';
import { ThreadPool, threaded } from '../../core/fairness/threads.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { mappingOfCheckedText } from '../../recording/mapping/mapping-of-file.ts';
import { Refusal, type RefusalKind } from './limits.ts';
import { type BodyRequest, type ReadBody, readBody } from './read-body.ts';

/** Milliseconds of a thread for one body. */
export const maxBodyTime = 30_000;

export const bodyThreadsName = 'bodies of changes at work';

type BodyToRead = Omit<BodyRequest, 'mapping'>;
type BodyOutcome = ReadBody | { readonly refusal: RefusalKind; readonly message: string };

/** Reads bodies in threads of their own: one may take 30 s, behind which other calls would wait. Tenants take turns. */
export class BodyReader {
  readonly #mapping: string | undefined;
  readonly #threads: Pick<ThreadPool, 'call'>;

  /** `mapping` is the text of the mapping's file, which was checked before. */
  constructor(mapping: string | undefined, pool: Pick<ThreadPool, 'call'> = new ThreadPool({ name: bodyThreadsName })) {
    this.#mapping = mapping;
    this.#threads = pool;
  }

  /**
   * Returns `longer` where the body has more bytes than were reserved for it. Throws AnnalsError where it is refused:
   * 400, 413, 429 or 503.
   */
  async read(request: BodyToRead): Promise<ReadBody | 'longer'> {
    const call = readBodyInThread.callOf(request, this.#mapping);
    const outcome = (await this.#threads.call(call, maxBodyTime).catch((error: unknown) => {
      throw error instanceof ThreadLost ? notRead(error) : error;
    })) as BodyOutcome;
    if (!('refusal' in outcome)) return outcome;
    if (outcome.refusal === 'longer') return 'longer';
    const type = outcome.refusal === 'tooLarge' ? 'payload_too_large' : 'validation_violation';
    throw new AnnalsError(type, outcome.message);
  }
}

let mappingText: string | undefined;
let parsedMapping: Mapping | undefined;

const readBodyInThread = threaded(
  import.meta.url,
  'readBodyInThread',
  (request: BodyToRead, text: string | undefined): BodyOutcome => {
    if (text !== mappingText) {
      mappingText = text;
      parsedMapping = text === undefined ? undefined : mappingOfCheckedText(text);
    }
    try {
      return readBody({ ...request, mapping: parsedMapping });
    } catch (error) {
      if (error instanceof Refusal) return { refusal: error.kind, message: error.message };
      throw error;
    }
  },
);

/** The thread did not start in time on a busy machine, or the body took more time or memory than it may. */
function notRead(cause: ThreadLost): AnnalsError {
  const message = 'The request body could not be read in time. Send less at once, or try again later.';
  return new AnnalsError('service_unavailable', message, { headers: { 'Retry-After': '5' }, cause });
}
