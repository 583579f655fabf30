import { ApiError } from '@annals/client';

/**
 * Bytes of an answer that the page reads. To read one takes up to some twenty times as much memory, and a browser gives a page 4 GiB at
 * most. Beyond that it ends the page without a word.
 */
export const maxAnswerBytes = 64 * 1_024 * 1_024;

/** Milliseconds for which the rest of a longer answer is counted. */
const countingTime = 5_000;

/** An answer that is too long for the page. Its address serves for a download. */
export class LongAnswerError extends ApiError {
  /** How long the answer is, or at least how long. */
  readonly bytes: number;
  readonly isWhole: boolean;
  readonly url: string;

  constructor(
    length: { readonly bytes: number; readonly isWhole: boolean },
    { url, headers }: Pick<Response, 'url' | 'headers'>,
  ) {
    super('answer_too_long', 'The answer is too long for this page.', {
      status: 200,
      requestId: headers.get('x-request-id') ?? undefined,
    });
    this.bytes = length.bytes;
    this.isWhole = length.isWhole;
    this.url = url;
  }
}

/**
 * The same answer, where it is not too long. Throws LongAnswerError. The service sends a long answer without its length, so the
 * page counts while it reads, and lets go of what it has once that is too much.
 *
 * @example
 * const response = await withinLimit(await fetch(address));
 */
export async function withinLimit(response: Response, limit = maxAnswerBytes): Promise<Response> {
  const { body, headers, status, statusText } = response;
  if (body === null || !isJson(headers)) return response;
  // That of a compressed answer is the length of what was sent.
  const length = headers.has('content-encoding') ? null : headers.get('content-length');
  if (length !== null) {
    if (Number(length) <= limit) return response;
    await body.cancel();
    throw new LongAnswerError({ bytes: Number(length), isWhole: true }, response);
  }
  const reader = body.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (;;) {
    const { value } = await reader.read();
    if (value === undefined) return new Response(new Blob(pieces), { headers, status, statusText });
    bytes += value.byteLength;
    if (bytes > limit) throw new LongAnswerError(await countRest(reader, bytes), response);
    pieces.push(value);
  }
}

/** Reads on without keeping anything, so that the reader learns how long the answer is. */
async function countRest(reader: ReadableStreamDefaultReader<Uint8Array>, read: number) {
  const until = performance.now() + countingTime;
  let bytes = read;
  while (performance.now() < until) {
    const { value } = await reader.read();
    if (value === undefined) return { bytes, isWhole: true };
    bytes += value.byteLength;
  }
  await reader.cancel();
  return { bytes, isWhole: false };
}

function isJson(headers: Headers): boolean {
  return headers.get('content-type')?.startsWith('application/json') === true;
}
