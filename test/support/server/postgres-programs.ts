import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = '/usr/lib/postgresql';
const programs = ['initdb', 'postgres', 'pg_resetwal', 'pg_dump', 'pg_restore'];

/**
 * The folder with all programs of a PostgreSQL that Debian packages, of this major version, or else of the highest;
 * undefined where there is none. The embedded one has no pg_dump.
 */
export function findPostgresPrograms(major?: number): string | undefined {
  const versions = existsSync(folder) ? readdirSync(folder).map(Number) : [];
  return versions
    .filter((version) => major === undefined || version === major)
    .sort((one, other) => other - one)
    .map((version) => join(folder, String(version), 'bin'))
    .find((place) => programs.every((program) => existsSync(join(place, program))));
}
