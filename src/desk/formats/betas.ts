import type { IncomingHttpHeaders } from 'node:http';
import { refused } from './members.ts';

/** Bytes. */
const maxBetas = 4_096;

/**
 * The client's choice of betas, for the provider. Throws validation_violation for one of those refused: they keep
 * something at the provider, or fetch or run it there.
 */
export function betasOf(
  headers: IncomingHttpHeaders,
  name: 'openai-beta' | 'anthropic-beta',
  refusedBetas: RegExp,
): Record<string, string> {
  const betas = headers[name]?.toString() ?? '';
  if (betas === '') return {};
  if (betas.length > maxBetas) throw refused(name, `must have at most ${maxBetas} bytes`);
  const bad = betas.split(',').find((beta) => refusedBetas.test(beta.trim()));
  if (bad !== undefined) throw refused(name, `${bad.trim().slice(0, 100)} is not supported`);
  if (!/^[\x20-\x7e]*$/.test(betas)) throw refused(name, 'must have visible ASCII characters');
  return { [name]: betas };
}
