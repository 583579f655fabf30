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
  const names = betas.split(',').map((beta) => beta.trim());
  const bad = names.find((beta) => refusedBetas.test(beta));
  if (bad !== undefined) throw refused(name, `${bad.slice(0, 100)} is not supported`);
  // What else a vendor may take for a separator, or for quotes, is not passed on.
  if (!/^[\w.:=/, -]*$/.test(betas)) throw refused(name, 'must be names of betas with commas between them');
  return { [name]: betas };
}
