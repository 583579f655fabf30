import { readConfig } from '../../../src/core/config/config.ts';

/** Variables of other programs, and those that a command reads by itself. */
const otherVariables = [
  'NODE_ENV',
  'XDG_CACHE_HOME',
  'ANNALS_SOURCE_URL',
  'POSTGRES_USER',
  'POSTGRES_DB',
  'POSTGRES_PASSWORD',
];

export const secretVariables = /^(DATABASE_URL|SMTP_URL|.*(PASSWORD|TOKEN|SECRET_KEY))$/;

/** The names that readConfig looks up, and those of other programs. */
export function knownVariables(): Set<string> {
  const names = new Set(otherVariables);
  const environment: Record<string, string | undefined> = {};
  readConfig(new Proxy(environment, { get: (_target, name) => void names.add(String(name)) }));
  return names;
}
