import { hash } from 'node:crypto';
import { identityLength } from './change.ts';

/** The identity of an imported change with an `id`. Each kind of identity is hashed with a prefix of its own. */
export function identityOfId(id: string): Buffer {
  return identityOf(`annals:id:${id}`);
}

/** The identity of a CloudEvent: its source and its id together. */
export function identityOfCloudEvent(source: string, id: string): Buffer {
  return identityOf(`annals:cloudevent:${JSON.stringify([source, id])}`);
}

const linePrefix = Buffer.from('annals:line:');

/** A buffer for the prefix and one line. Longer lines get a buffer of their own. */
const scratch = Buffer.concat([linePrefix], 16 * 1024);

/** The key that equal lines share: the identity of the first of them. `line` has no line end. */
export function identityOfLine(line: Buffer): Buffer {
  const length = linePrefix.length + line.length;
  if (length > scratch.length) return identityOf(Buffer.concat([linePrefix, line]));
  line.copy(scratch, linePrefix.length);
  return identityOf(scratch.subarray(0, length));
}

/** The identity of a line of which the file had `occurrence` equal ones before. */
export function identityOfRepeatedLine(first: Buffer, occurrence: number): Buffer {
  return occurrence === 0 ? first : identityOf(`annals:repeat:${first.toString('hex')}:${occurrence}`);
}

/** The identity of a line of a file that grows: the file and where the line ends in it. */
export function identityOfPosition(file: string, end: number): Buffer {
  return identityOf(`annals:position:${JSON.stringify([file, end])}`);
}

function identityOf(text: string | Buffer): Buffer {
  // see hashOf
  return Buffer.from(hash('sha256', text, 'hex').slice(0, 2 * identityLength), 'hex');
}
