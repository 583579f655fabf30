import { createHash, hash } from 'node:crypto';
import { identityLength } from './change.ts';

/** The identity of an imported change that names its `id`. Each kind of identity hashes under a prefix of its own. */
export function identityOfId(id: string): Buffer {
  return hash('sha256', `annals:id:${id}`, 'buffer').subarray(0, identityLength);
}

/** What equal lines have in common: the identity of the first of them. `line` comes without its line end. */
export function identityOfLine(line: Buffer): Buffer {
  return createHash('sha256').update('annals:line:').update(line).digest().subarray(0, identityLength);
}

/** The identity of a line that has come `occurrence` times before in its file. */
export function identityOfRepeatedLine(first: Buffer, occurrence: number): Buffer {
  if (occurrence === 0) return first;
  const repeated = createHash('sha256').update('annals:repeat:').update(first).update(`:${occurrence}`);
  return repeated.digest().subarray(0, identityLength);
}
