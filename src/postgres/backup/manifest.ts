import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { OperatorError } from '../../core/errors.ts';
import { createSealer } from '../../core/sealing.ts';
import { bridge } from '../schema/adopt-baseline.ts';

/** Grows when an older version could not read a backup any more. */
export const backupFormat = 2;
/** The first file of a backup: what a restore checks before it begins. */
export const beginFile = 'begin.json';
/** The file after the tables: everything about the backup. A backup without it is not complete. */
export const manifestFile = 'manifest.json';
/** The last file of a backup: what confirms it to whoever has the secret key. */
export const authenticationFile = 'manifest.hmac';

const table = {
  name: Type.String(),
  columns: Type.Array(Type.String(), { minItems: 1 }),
};

const begin = {
  format: Type.Integer(),
  /** The number of the last migration of the database. */
  schema: Type.Integer(),
  /** The file names of all migrations of the database, in order. */
  migrations: Type.Array(Type.String()),
  createdAt: Type.String(),
  /** Of each secret key, the first one first: a value that this key has sealed, in base64. */
  keys: Type.Array(Type.String(), { minItems: 1 }),
};

/** A table as it is in the backup. Its files together are what COPY writes, as text, of its columns. */
const copiedTable = Type.Object({
  ...table,
  rows: Type.Integer(),
  bytes: Type.Integer(),
  /** Of these bytes, in hexadecimal. */
  sha256: Type.String(),
});

/** An identity column with the state of its sequence; `called` tells whether it gave `value` already. */
const sequence = Type.Object({
  table: Type.String(),
  column: Type.String(),
  value: Type.String({ pattern: '^-?[0-9]+$' }),
  called: Type.Boolean(),
});

/** An index. What creates it is not in the backup, so that a restore carries out nothing that a file says. */
const index = Type.Object({
  table: Type.String(),
  name: Type.String(),
  comment: Type.Union([Type.String(), Type.Null()]),
});

const beginSchema = Type.Object({ ...begin, tables: Type.Array(Type.Object(table)) });
const manifestSchema = Type.Object({
  ...begin,
  tables: Type.Array(copiedTable),
  sequences: Type.Array(sequence),
  indexes: Type.Array(index),
});

/** What a backup tells of itself at its beginning. */
export type BackupBegin = Static<typeof beginSchema>;
/** What a backup tells of itself at its end. */
export type BackupManifest = Static<typeof manifestSchema>;
export type BackedUpSequence = Static<typeof sequence>;
export type BackedUpIndex = Static<typeof index>;

/** Reads the first file of a backup. Throws an OperatorError where it is of another format, or none at all. */
export function readBegin(text: string): BackupBegin {
  const value = parsed(text);
  if (Value.Check(Type.Object({ format: begin.format }), value) && value.format !== backupFormat) {
    throw new OperatorError(
      value.format > backupFormat
        ? `The backup has format ${value.format}; this version of Annals knows up to ${backupFormat}.`
        : `The backup has format ${value.format}, without what confirms it; this version of Annals knows ${backupFormat}. ${bridge('backup')}`,
    );
  }
  if (!Value.Check(beginSchema, value)) throw new OperatorError(noBackup);
  return value;
}

/** Reads the last file of a backup. */
export function readManifest(text: string): BackupManifest {
  const value = parsed(text);
  if (!Value.Check(manifestSchema, value)) throw new OperatorError(noBackup);
  return value;
}

export const noBackup = 'The file is not a backup of Annals, or it is damaged.';

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OperatorError(noBackup);
  }
}

const purpose = 'annals backup, key check';

/** A sealed value of each secret key, in base64. */
export function checksOfKeys(secretKeys: readonly Uint8Array[]): string[] {
  return secretKeys.map((key) =>
    Buffer.from(createSealer([key]).seal(Buffer.from('annals backup'), purpose)).toString('base64'),
  );
}

/**
 * Checks that the secret keys open what is sealed in a backup. Throws an OperatorError where none is the first key of the
 * backup. Returns how many of its other keys are missing.
 */
export function checkKeys({ keys }: BackupBegin, secretKeys: readonly Uint8Array[]): number {
  const sealer = createSealer(secretKeys);
  const missing = keys.map((check) => sealer.open(Buffer.from(check, 'base64'), purpose) === undefined);
  if (missing[0] !== false) {
    throw new OperatorError(
      'The secret key does not fit: the backup was made with another one, and nothing that is sealed in it would open. ' +
        'Give the key of that installation, in ANNALS_SECRET_KEY or as secret.key in the data folder.',
    );
  }
  return missing.filter((one) => one).length;
}

/** The bytes of a backup's first and last description. The last one has the SHA-256 of each table. */
export interface Descriptions {
  begin: Uint8Array;
  manifest: Uint8Array;
}

/** The authentication code of a backup, in hexadecimal. */
export function authenticate(secretKey: Uint8Array, described: Descriptions): string {
  const key = createHmac('sha256', secretKey).update('annals backup authentication').digest();
  const sum = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  return createHmac('sha256', key).update(sum(described.begin)).update(sum(described.manifest)).digest('hex');
}

/** Whether the code is that of one of the keys. */
export function isAuthentic(secretKeys: readonly Uint8Array[], descriptions: Descriptions, code: string): boolean {
  const given = Buffer.from(code);
  return secretKeys.some((key) => {
    const own = Buffer.from(authenticate(key, descriptions));
    return own.length === given.length && timingSafeEqual(own, given);
  });
}
