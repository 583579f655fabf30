import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { CheckpointFile } from './checkpoint-file.ts';
import { formatVerifierKey, type Signer, signatureTypes, verifierOf } from './note.ts';

/** The key that signs logs, and the newest checkpoints that it signed. */
export interface LogSigner {
  /** The signer of the log with that name. */
  of(origin: string): Signer;
  /** The verifier key of the log with that name. */
  keyOf(origin: string): string;
  readonly newest: CheckpointFile;
  /** A name that no log has yet. */
  newOrigin(): string;
}

/** Opens the key of a file, and the file of its checkpoints beside it. `host` is what names of new logs begin with. */
export function openSigner(file: string, host: string): LogSigner {
  const privateKey = readSigningKey(file, `ANNALS_PROOF_KEY_FILE names ${file}`);
  const publicKey = createPublicKey(privateKey);
  const verifier = (origin: string) => verifierOf(origin, signatureTypes.ed25519, publicKey);
  return {
    of: (origin) => ({ ...verifier(origin), privateKey }),
    keyOf: (origin) => formatVerifierKey(verifier(origin)),
    newest: CheckpointFile.open(`${file}.logs`),
    newOrigin: () => `${host}/log/${randomBytes(16).toString('hex')}`,
  };
}

/** What the names of logs begin with: the host of the public address, else the id of the installation. */
export function hostOfLogs(baseUrl: string | undefined, installation: string): string {
  return baseUrl === undefined ? installation : new URL(baseUrl).host;
}

/** The Ed25519 key of a file. Throws an OperatorError that begins with `named`, and never has what is in the file. */
export function readSigningKey(file: string, named: string): KeyObject {
  const howTo = `To make one: annals proof key ${file}`;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`${named}, which cannot be read. ${howTo}`, { cause: error });
  }
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // told below, without what the file has
  }
  throw new OperatorError(`${named}, which has no Ed25519 key in PEM. ${howTo}`);
}

/** Makes a key that signs logs, in a new file with mode 600. Never overwrites a file. */
export function makeProofKey(file: string): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  let opened: number;
  try {
    opened = openSync(file, 'wx', 0o600);
  } catch (error) {
    const exists = hasCode(error, 'EEXIST');
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
