import { generateKeyPairSync } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { OperatorError } from '../../../core/errors.ts';

/** Makes a key that signs logs, in a new file that nobody else reads. Never writes over a file. */
export function makeProofKey(file: string): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  let opened: number;
  try {
    opened = openSync(file, 'wx', 0o600);
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    throw new OperatorError(exists ? `${file} is there already` : `${file} cannot be made`, { cause: error });
  }
  try {
    writeSync(opened, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
    fsyncSync(opened);
  } catch (error) {
    rmSync(file, { force: true });
    throw new OperatorError(`${file} cannot be written`, { cause: error });
  } finally {
    closeSync(opened);
  }
}
