import { decodeBase64 } from './base64.ts';

/** A proof that can be kept as a file, as C2SP's tlog-proof has it. */
export interface InclusionProof {
  /** What the leaf is made of: not part of the proof, and not to be trusted before the leaf is hashed. */
  readonly extra: Buffer | undefined;
  readonly index: number;
  readonly hashes: readonly Buffer[];
  /** The note of the checkpoint, as the log gave it. */
  readonly checkpoint: string;
}

const firstLine = 'c2sp.org/tlog-proof@v1';

export function formatInclusionProof({ extra, index, hashes, checkpoint }: InclusionProof): string {
  return [
    firstLine,
    ...(extra === undefined ? [] : [`extra ${extra.toString('base64')}`]),
    `index ${index}`,
    ...hashes.map((hash) => hash.toString('base64')),
    '',
    checkpoint,
  ].join('\n');
}

/** What the file of a proof says; undefined for anything else. Nothing of it is verified. */
export function parseInclusionProof(text: string): InclusionProof | undefined {
  const end = text.indexOf('\n\n');
  const [first, ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  if (first !== firstLine) return undefined;
  const extra = lines[0]?.startsWith('extra ') ? decodeBase64(lines.shift()?.slice('extra '.length) ?? '') : null;
  const [, digits] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '') ?? [];
  const hashes = lines.map(decodeBase64);
  const index = Number(digits);
  if (extra === undefined || !Number.isSafeInteger(index) || hashes.length > 63) return undefined;
  const whole = hashes.filter((hash) => hash?.length === 32).filter((hash) => hash !== undefined);
  if (whole.length !== hashes.length) return undefined;
  return { extra: extra ?? undefined, index, hashes: whole, checkpoint: text.slice(end + 2) };
}
