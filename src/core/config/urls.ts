import { databaseUrlFault } from './database-url.ts';
import { Fault } from './fault.ts';

export function urlWith(protocols: string[]): (value: string) => string | Fault {
  return (value) => {
    const url = URL.parse(value);
    if (url !== null && protocols.includes(url.protocol)) return value;
    return new Fault(`must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`);
  };
}

export function parseDatabaseUrl(value: string): string | Fault {
  const url = urlWith(['postgres:', 'postgresql:'])(value);
  const fault = typeof url === 'string' ? databaseUrlFault(url) : undefined;
  return fault === undefined ? url : new Fault(fault);
}

export function parseBaseUrl(value: string): string | Fault {
  const url = URL.parse(value);
  const plain = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (plain && /^https?:$/.test(url.protocol)) return value.replace(/\/+$/, '');
  return new Fault('must be a URL that begins with http:// or https://, without user, query and fragment');
}

/** First parts of the service's own paths. Annals could not tell a public address that begins with one from them. */
export const ownSegments: readonly string[] = [
  '.well-known',
  'ai-service',
  'changelog',
  'configuration',
  'console',
  'docs',
  'health',
  'oauth',
  'openapi.json',
  'schema',
  'usage',
];

export function parsePublicUrl(value: string): string | Fault {
  const url = parseBaseUrl(value);
  if (url instanceof Fault) return url;
  const [, segment = ''] = new URL(url).pathname.split('/');
  if (!ownSegments.includes(segment)) return url;
  return new Fault(`must have a path that does not begin with /${segment}, which is a path of the service itself`);
}

export function parseOrigins(value: string): string[] | Fault {
  if (value === 'none') return [];
  const origins = value.split(',').map((origin) => origin.trim());
  const areOrigins = origins.every((origin) => origin === '*' || URL.parse(origin)?.origin === origin);
  return areOrigins
    ? origins
    : new Fault('must be a comma-separated list of origins such as https://shop.example, * or none');
}
