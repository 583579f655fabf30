import { existsSync } from 'node:fs';

const places = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'];

/** The path of pgbouncer, which npm does not install; undefined where the machine has none. */
export function findPgbouncer(): string | undefined {
  return places.find((place) => existsSync(place));
}
