import { HttpClient, NoResponse } from '../../outbound/http-client.ts';
import { cosignedAt } from '../log/checkpoint.ts';
import { formatSignature, parseNote, parseSignatures } from '../log/note.ts';
import type { Witness } from '../log/policy.ts';
import { printable } from '../verify/verdicts.ts';

/** What a log asks a witness to sign. */
export interface ToWitness {
  readonly size: number;
  /** The note of the checkpoint, signed by its log. */
  readonly note: string;
  /** The hashes that prove the tree of `oldSize` leaves, of 1 or more and less than `size`, to be its beginning. */
  readonly prove: (oldSize: number) => Promise<readonly Buffer[]>;
}

/**
 * The line of a cosignature; else why there is none, in words that follow the name of the witness. `isRefused`: it took
 * the request and does not sign this checkpoint, for instance since the log has shown it another tree.
 */
export type WitnessResult = { readonly line: string } | { readonly fault: string; readonly isRefused?: true };

/** Of the answer of a witness: the milliseconds that Annals waits, and the bytes that it reads. */
export const witnessAnswer = { time: 10_000, bytes: 64 * 1024 };

/** The statuses by which C2SP's tlog-witness refuses a checkpoint. Others, a rate limit say, refuse none. */
const refusals = new Set([400, 403, 404, 422]);

/**
 * Asks a witness for its cosignature. `knownSize` is the size of the tree that it signed last, as far as we know; a
 * witness that signed another one says so, and gets one more request.
 */
export async function askWitness(
  witness: Witness & { readonly url: string },
  checkpoint: ToWitness,
  knownSize: number,
  signal: AbortSignal,
): Promise<WitnessResult> {
  let oldSize = Math.min(knownSize, checkpoint.size);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const answer = await post(witness.url, await requestOf(checkpoint, oldSize), signal);
    if (typeof answer === 'string') return { fault: answer };
    if (answer.status === 200) return readLine(answer.text, checkpoint.note, witness);
    if (answer.status !== 409) {
      const fault = `answered ${answer.status}${quoted(answer.text)}`;
      return refusals.has(answer.status) ? { fault, isRefused: true } : { fault };
    }
    const size = /^(?:0|[1-9]\d{0,15})\n$/.test(answer.text) ? Number(answer.text) : Number.NaN;
    if (!Number.isSafeInteger(size)) return { fault: 'answered 409 without the size of its tree' };
    if (size > checkpoint.size) {
      return { fault: `has signed a tree of ${size} leaves, which is more than there are`, isRefused: true };
    }
    oldSize = size;
  }
  return { fault: 'signs other checkpoints of this log at the same time' };
}

/** Characters of an answer that a log line has. */
const maxQuoted = 200;

/** What a witness says of its reasons comes from outside: bounded, on one line, and nothing that steers a terminal. */
function quoted(text: string): string {
  const line = printable(text.trim().slice(0, maxQuoted));
  return line === '' ? '' : `: ${line}`;
}

async function requestOf({ size, note, prove }: ToWitness, oldSize: number): Promise<string> {
  const hashes = oldSize === 0 || oldSize === size ? [] : await prove(oldSize);
  return [`old ${oldSize}`, ...hashes.map((hash) => hash.toString('base64')), '', note].join('\n');
}

function readLine(text: string, note: string, { verifier }: Witness): WitnessResult {
  const own = parseSignatures(text)?.find(({ name, id }) => name === verifier.name && id === verifier.id);
  if (own === undefined) return { fault: 'answered without a signature of its key' };
  const line = formatSignature(own);
  const signed = parseNote(note + line);
  const at = signed === undefined ? 'wrong' : cosignedAt(signed, verifier);
  return typeof at === 'number' ? { line } : { fault: 'answered with a signature that is not for this checkpoint' };
}

async function post(
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string } | string> {
  const late = `did not answer in ${witnessAnswer.time / 1000} s`;
  try {
    const headers = { 'content-type': 'text/plain; charset=utf-8' };
    const address = new URL(`${url}/add-checkpoint`);
    const { status, body: answer, cut } = await client.send(address, { headers, body, signal }, witnessAnswer);
    signal.throwIfAborted();
    if (cut === 'bytes') return `answered with more than ${witnessAnswer.bytes} bytes`;
    if (cut !== undefined) return cut === 'time' ? late : 'could not be reached';
    return { status, text: answer.toString() };
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof NoResponse && error.reason === 'timeout' ? late : 'could not be reached';
  }
}

const client = new HttpClient({ connectTimeout: witnessAnswer.time });
