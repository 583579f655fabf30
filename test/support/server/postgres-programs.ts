import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = '/usr/lib/postgresql';
const programs = ['initdb', 'postgres', 'pg_resetwal', 'pg_dump', 'pg_restore'];

/**
 * The folder with all programs of a PostgreSQL that Debian packages, of the highest version; undefined where there is none.
 * The embedded one has no pg_dump.
 */
export function findPostgresPrograms(): string | undefined {
  const versions = existsSync(folder) ? readdirSync(folder).sort((one, other) => Number(other) - Number(one)) : [];
  return versions
    .map((version) => join(folder, version, 'bin'))
    .find((place) => programs.every((program) => existsSync(join(place, program))));
}
