import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../core/operator-error.ts';

/** One file of the folder of migrations. */
export interface Migration {
  number: number;
  name: string;
  text: string;
  /** SHA-256 of the text in hexadecimal, independent of line endings. */
  checksum: string;
}

const fileName = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The migrations of a folder, in order. Throws an OperatorError if a name is wrong or a number occurs twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    const match = fileName.exec(file);
    if (match === null) throw new OperatorError(`${file} is not named as a migration is: 0001-name.sql`);
    const number = Number(match[1]);
    const twin = migrations.find((other) => other.number === number);
    if (twin !== undefined) throw new OperatorError(`${file} and ${twin.name} have the same number`);
    const text = readFileSync(join(folder, file), 'utf8');
    migrations.push({ number, name: file, text, checksum: checksumOf(text) });
  }
  return migrations;
}

/** What a database stores about an applied migration. */
function checksumOf(text: string): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
}
