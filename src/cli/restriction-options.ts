import { readRestriction } from '../history/ask/restriction.ts';
import { UsageError } from './command.ts';

/** The restriction of `--query` and `--hide`; undefined where neither was given. */
export function restrictionOf({ query, hide }: { query: string | undefined; hide: string | undefined }) {
  if (query === undefined && hide === undefined) return undefined;
  const paths = hide?.split(/[ ,]/).filter((path) => path !== '') ?? [];
  if (hide !== undefined && paths.length === 0) throw new UsageError('--hide needs at least one path');
  return readRestriction([{ query: query ?? '', hide: paths }]);
}
