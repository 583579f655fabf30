import { AnnalsError } from '../../core/errors.ts';
import type { Idempotency, IdempotentRequest } from '../completions/idempotency.ts';
import type { StreamedWork } from '../streamed-answer.ts';
import { errorOfAnswer } from './error-body.ts';
import { openaiLimits } from './limits.ts';

/** Makes the answer to one request. A repeat with its Idempotency-Key gets the same bytes without a call of the provider. */
export interface IdempotentAnswer {
  /** Cancels the call when the client leaves; undefined with a key, because a repeat may ask for the answer. */
  readonly signal: AbortSignal | undefined;
  /** Resolves to the body. */
  whole(work: () => Promise<string>): Promise<string>;
  /** A repeat writes the whole stream at once. It throws conflict_resource where the stream was too long to be stored. */
  streamed(work: StreamedWork): StreamedWork;
}

/** What is stored of an answer. Without a body: a stream that was too long. */
interface StoredAnswer {
  readonly body?: string | undefined;
}

export function idempotentAnswer(
  idempotency: Idempotency,
  { key, ...request }: Omit<IdempotentRequest, 'key'> & { readonly key: string | undefined },
  gone: AbortSignal,
): IdempotentAnswer {
  if (key === undefined) return { signal: gone, whole: (work) => work(), streamed: (work) => work };

  const named = { ...request, key };

  async function once(work: () => Promise<StoredAnswer>): Promise<StoredAnswer> {
    return await idempotency.once(named, work, gone).catch((error: unknown) => {
      throw errorOfAnswer(error, undefined);
    });
  }

  return {
    signal: undefined,

    async whole(work) {
      const { body = '' } = await once(async () => ({ body: await work() }));
      return body;
    },

    streamed: (work) => async (stream) => {
      let last: string | undefined;
      const kept = new KeptText(openaiLimits.storedStreamBytes);
      const { body } = await once(async () => {
        const write = (text: string) => {
          kept.add(text);
          return stream.write(text);
        };
        last = await work({ ...stream, write });
        kept.add(last);
        return { body: kept.text };
      });
      // The first request has written the parts before.
      if (last !== undefined) return last;
      if (body === undefined) throw errorOfAnswer(tooLong(), undefined);
      return body;
    },
  };
}

/** A text in parts; undefined once it has more bytes than the limit. */
class KeptText {
  readonly #maxBytes: number;
  #parts: string[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(part: string): void {
    this.#bytes += Buffer.byteLength(part);
    if (this.#bytes > this.#maxBytes) this.#parts = [];
    else this.#parts.push(part);
  }

  get text(): string | undefined {
    return this.#bytes > this.#maxBytes ? undefined : this.#parts.join('');
  }
}

function tooLong(): AnnalsError {
  const message = `belongs to a stream of more than ${openaiLimits.storedStreamBytes} bytes, which is not stored`;
  return new AnnalsError('conflict_resource', 'The stream cannot be repeated.', {
    details: [{ field: 'Idempotency-Key', message }],
  });
}
