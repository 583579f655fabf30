import { TimeSlice } from '../core/fairness/time-slice.ts';
import { JsonMeter } from '../core/json/measure.ts';

/**
 * The limits for reading a provider's answer. A self-hosted server belongs to the tenant and can send anything: an
 * answer beyond them is rejected, so that a tenant can exhaust neither memory nor the event loop.
 */
export const answerLimits = {
  /** Bytes of an answer that is not streamed. */
  wholeBytes: 2 * 1024 * 1024,
  /** JSON values of an answer that is not streamed. */
  wholeValues: 50_000,
  /** Bytes of a non-streamed answer above which it gets an event loop turn of its own. */
  shortBytes: 32 * 1024,
  /** Bytes of a non-streamed answer above which the heap is kept small for a while. */
  longBytes: 128 * 1024,
  /** Bytes read from a stream in one piece. */
  pieceBytes: 2 * 1024,
  /** Bytes of a stream, including its events. */
  streamBytes: 64 * 1024 * 1024,
  /** Bytes of one event of a stream. */
  eventBytes: 256 * 1024,
  /** Bytes of an answer, or of one event of a stream, that is passed on as it was sent. */
  passedBytes: 4 * 1024 * 1024,
  /** JSON values of an answer that is passed on. */
  passedValues: 500_000,
  /** Bytes of embeddings: 1,000 of 3,072 numbers as base64. */
  embeddingsBytes: 16 * 1024 * 1024,
  /** JSON values of embeddings. */
  embeddingsValues: 1_000_000,
  /** Bytes of an event that is passed on before its end. */
  begunEventBytes: 64 * 1024,
  /** Bytes of text in a stream. */
  streamedTextBytes: 2 * 1024 * 1024,
  /** Tool calls read from one answer. The service runs far fewer. */
  toolCalls: 4_096,
  /** Tool calls read from a long non-streamed answer. The others are only counted. */
  checkedToolCalls: 64,
  /** Bytes of an error answer. */
  errorBytes: 64 * 1024,
} as const;

/** Whether a JSON text has more than `max` values. Undefined for other text. */
export function hasMoreValues(text: Buffer, max: number): boolean {
  const meter = meterOf(text, max);
  meter.read(text.length);
  return meter.values > max;
}

/** `hasMoreValues` for a long text, in slices. */
export async function hasMoreValuesInSlices(text: Buffer, max: number): Promise<boolean> {
  const meter = meterOf(text, max);
  const slice = new TimeSlice();
  while (!meter.isDone) {
    meter.read(charactersBetweenPauses);
    // A rest rejects once the client has gone. The answer is still read, for the quota.
    if (slice.isDue) await slice.rest().catch(() => {});
  }
  return meter.values > max;
}

const charactersBetweenPauses = 100_000;

function meterOf(text: Buffer, maxValues: number): JsonMeter {
  return new JsonMeter(text.toString('latin1'), { maxDepth: Number.POSITIVE_INFINITY, maxValues });
}

/** Counts the bytes of an event in a stream. An empty line ends an event. */
export class EventMeter {
  #bytes = 0;
  #afterLineEnd = false;

  /** Reads the next bytes of the stream. Returns whether an event has exceeded the limit. */
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
