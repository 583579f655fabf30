import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { OperatorError } from '../../core/errors.ts';
import { createSealer } from '../../core/sealing.ts';
import { bridge } from '../schema/adopt-baseline.ts';

/** Increases when older versions can no longer read a backup. */
export const backupFormat = 2;
/** The first file of a backup, which a restore checks before it begins. */
export const beginFile = 'begin.json';
/** The file after the tables. A backup without it is incomplete. */
export const manifestFile = 'manifest.json';
/** The last file of a backup: its authentication code under the secret key. */
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
  /** A value sealed with each secret key, in their order, in base64. */
  keys: Type.Array(Type.String(), { minItems: 1 }),
};

/** A table in the backup. Its files together are the text of COPY. */
const copiedTable = Type.Object({
  ...table,
  rows: Type.Integer(),
  bytes: Type.Integer(),
  /** Of these bytes, in hexadecimal. */
  sha256: Type.String(),
});

/** The state of an identity column's sequence; `called`: whether `value` was used. */
const sequence = Type.Object({
  table: Type.String(),
  column: Type.String(),
  value: Type.String({ pattern: '^-?[0-9]+$' }),
  called: Type.Boolean(),
});

/** An index, without its statement: a restore executes no SQL of the backup. */
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

/** The description at the beginning of a backup. */
export type BackupBegin = Static<typeof beginSchema>;
/** The description at the end of a backup. */
export type BackupManifest = Static<typeof manifestSchema>;
export type BackedUpSequence = Static<typeof sequence>;
export type BackedUpIndex = Static<typeof index>;

/** Reads the first file of a backup. Throws an OperatorError for another format, or if it is malformed. */
export function readBegin(text: string): BackupBegin {
  const value = parsed(text);
  if (Value.Check(Type.Object({ format: begin.format }), value) && value.format !== backupFormat) {
    throw new OperatorError(
      value.format > backupFormat
        ? `The backup has format ${value.format}; this version of Annals knows up to ${backupFormat}.`
        : `The backup has format ${value.format}, without an authentication code; this version of Annals knows ${backupFormat}. ${bridge('backup')}`,
    );
  }
  if (!Value.Check(beginSchema, value)) throw new OperatorError(noBackup);
  return value;
}

/** Reads the manifest of a backup. */
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
 * Checks that the secret keys open the sealed values of a backup. Throws an OperatorError if the backup's first key is
 * missing. Returns the number of its other keys that are missing.
 */
export function checkKeys({ keys }: BackupBegin, secretKeys: readonly Uint8Array[]): number {
  const sealer = createSealer(secretKeys);
  const missing = keys.map((check) => sealer.open(Buffer.from(check, 'base64'), purpose) === undefined);
  if (missing[0] !== false) {
    throw new OperatorError(
      'The secret key does not fit: the backup was made with another one, and its sealed values could not be opened. ' +
        'Provide the key of that installation, in ANNALS_SECRET_KEY or as secret.key in the data folder.',
    );
  }
  return missing.filter(Boolean).length;
}

/** The bytes of a backup's descriptions. The manifest has the SHA-256 of each table. */
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

/** Whether one of the keys made the code. */
export function isAuthentic(secretKeys: readonly Uint8Array[], descriptions: Descriptions, code: string): boolean {
  const actual = Buffer.from(code);
  return secretKeys.some((key) => {
    const expected = Buffer.from(authenticate(key, descriptions));
    return expected.length === actual.length && timingSafeEqual(expected, actual);
  });
}
