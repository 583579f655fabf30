import { hash } from 'node:crypto';
import { identityLength } from './change.ts';

/** The identity of an imported change that names its `id`. Each kind of identity hashes under a prefix of its own. */
export function identityOfId(id: string): Buffer {
  return identityOf(`annals:id:${id}`);
}

const linePrefix = Buffer.from('annals:line:');

/** What equal lines have in common: the identity of the first of them. `line` comes without its line end. */
export function identityOfLine(line: Buffer): Buffer {
  return identityOf(Buffer.concat([linePrefix, line]));
}

/** The identity of a line that has come `occurrence` times before in its file. */
export function identityOfRepeatedLine(first: Buffer, occurrence: number): Buffer {
  return occurrence === 0 ? first : identityOf(`annals:repeat:${first.toString('hex')}:${occurrence}`);
}

function identityOf(text: string | Buffer): Buffer {
  return hash('sha256', text, 'buffer').subarray(0, identityLength);
}
