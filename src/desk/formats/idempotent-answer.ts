import { AnnalsError } from '../../core/errors.ts';
import type { Idempotency, IdempotentRequest } from '../completions/idempotency.ts';
import type { StreamedWork } from '../streamed-answer.ts';
import { errorOfAnswer } from './call-errors.ts';
import { formatLimits } from './limits.ts';

/** Produces the answer to a request. A repeat with its Idempotency-Key gets the same bytes, without a call. */
export interface IdempotentAnswer {
  /** Cancels the call when the client leaves; undefined with a key, because a repeat may ask for the answer. */
  readonly signal: AbortSignal | undefined;
  /** Resolves to the body. A repeat of one that was too long to be stored throws conflict_resource. */
  whole(work: () => Promise<string>): Promise<string>;
  /** A repeat writes the whole stream in one piece, and throws conflict_resource if it was too long to be stored. */
  streamed(work: StreamedWork): StreamedWork;
}

/** The stored form of an answer. Without a body: one that was too long. */
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
      let made: string | undefined;
      const { body } = await once(async () => {
        made = await work();
        return { body: Buffer.byteLength(made) > formatLimits.storedAnswerBytes ? undefined : made };
      });
      if (made !== undefined) return made;
      if (body === undefined) throw errorOfAnswer(tooLong('answer', formatLimits.storedAnswerBytes), undefined);
      return body;
    },

    streamed: (work) => async (stream) => {
      let last: string | undefined;
      const recorded = new BoundedText(formatLimits.storedStreamBytes);
      const { body } = await once(async () => {
        const write = (text: string) => {
          recorded.add(text);
          return stream.write(text);
        };
        last = await work({ ...stream, write });
        recorded.add(last);
        return { body: recorded.text };
      });
      // The first request has already written the parts.
      if (last !== undefined) return last;
      if (body === undefined) throw errorOfAnswer(tooLong('stream', formatLimits.storedStreamBytes), undefined);
      return body;
    },
  };
}

/** A text in parts; undefined once it exceeds the limit of bytes. */
class BoundedText {
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

function tooLong(what: 'answer' | 'stream', maxBytes: number): AnnalsError {
  const message = `belongs to ${what === 'answer' ? 'an' : 'a'} ${what} of more than ${maxBytes} bytes, which is not stored`;
  return new AnnalsError('conflict_resource', `The ${what} cannot be repeated.`, {
    details: [{ field: 'Idempotency-Key', message }],
  });
}
