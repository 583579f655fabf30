import { existsSync } from 'node:fs';

const places = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'];

/** The path of nginx, which npm does not install; undefined where the machine has none. */
export function findNginx(): string | undefined {
  return places.find((place) => existsSync(place));
}
