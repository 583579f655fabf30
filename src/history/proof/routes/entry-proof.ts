import { AnnalsError } from '../../../core/errors.ts';
import type { Database } from '../../../postgres/database.ts';
import { readLine } from '../bundle/bundle-lines.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { formatInclusionProof } from '../tlog/inclusion-proof.ts';
import { hashOfRange, inclusionRanges } from '../tlog/merkle.ts';
import { readNodes } from '../tree/tile-store.ts';
import { formatLine } from '../verify/write-bundle.ts';

/**
 * The proof of an entry or a receipt as a file of C2SP's tlog-proof; its extra data is the line of docs/proof.md. Throws
 * resource_not_found for a position that the checkpoint does not have, and for one whose entry is gone.
 */
export async function readEntryProof(
  db: Database,
  tenant: string,
  checkpoint: string,
  position: number,
): Promise<string> {
  const size = parseCheckpoint(checkpoint)?.size ?? 0;
  if (position > size) {
    throw new AnnalsError('resource_not_found', `The newest checkpoint of this history has ${size} positions.`);
  }
  const line = await readLine(db, tenant, position);
  if (line.kind !== 'entry' && line.kind !== 'receipt text') {
    throw new AnnalsError('resource_not_found', 'The change at this position is not there any more.');
  }
  const read = readNodes(db, tenant, size);
  const hashes: Buffer[] = [];
  for (const range of inclusionRanges(position - 1, size)) hashes.push(await hashOfRange(range, read));
  return formatInclusionProof({ extra: Buffer.from(formatLine(line)), index: position - 1, hashes, checkpoint });
}
