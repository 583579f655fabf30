/**
 * What is read of a provider's answer. A self-hosted server is the tenant's own and may send anything; an answer beyond
 * these limits counts as no answer, so that neither memory nor the event loop is the tenant's to take.
 */
export const answerLimits = {
  /** Bytes of an answer that comes in one piece. */
  wholeBytes: 2 * 1024 * 1024,
  /** JSON values of such an answer. */
  wholeValues: 50_000,
  /** Bytes of a stream, its events included. */
  streamBytes: 64 * 1024 * 1024,
  /** Bytes of one event of a stream. */
  eventBytes: 256 * 1024,
  /** Bytes of text that a stream may give. */
  streamedTextBytes: 2 * 1024 * 1024,
  /** Tool calls of one answer that are looked at; far more than are run. */
  toolCalls: 4_096,
  /** Bytes of an answer that is an error. */
  errorBytes: 64 * 1024,
} as const;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const bracket = 0x5b;
const brace = 0x7b;

/** Whether a JSON text has more values than that; of what is no JSON the answer means nothing. */
export function hasMoreValues(text: Uint8Array, max: number): boolean {
  let values = 1;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const byte = text[index];
    if (inString) {
      if (byte === backslash) index += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === comma || byte === bracket || byte === brace) {
      values += 1;
      if (values > max) return true;
    }
  }
  return false;
}

/** Counts the bytes of a stream's event; an empty line ends one. */
export class EventMeter {
  #bytes = 0;
  #afterLineEnd = false;

  /** Takes the next bytes of the stream; answers whether an event has grown beyond the limit. */
  isBeyond(chunk: Uint8Array, max: number): boolean {
    let last = 0;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index];
      if (byte === 0x0d) continue;
      if (byte === 0x0a && this.#afterLineEnd) {
        this.#bytes = 0;
        last = index + 1;
      }
      this.#afterLineEnd = byte === 0x0a;
      if (this.#bytes + index - last >= max) return true;
    }
    this.#bytes += chunk.length - last;
    return false;
  }
}
