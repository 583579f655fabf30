import { threaded } from '../../core/fairness/threads.ts';
import { elementsOf, entriesOf, kindOf, memberOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { mask } from '../../core/sealing.ts';
import { compileMatcher } from '../../query/match.ts';
import type { DeliveredChange } from '../changes.ts';

/** Longer bodies are sent without values. */
export const maxBodyBytes = 256 * 1024;

const maskText = JSON.stringify(mask);

/**
 * Masks the values of hidden paths in the item's JSON text, also in nested values. Paths match with and without array
 * positions. `*` matches any characters, as in queries.
 */
export function withHidden(text: string, hide: readonly string[]): string {
  if (hide.length === 0) return text;
  const items = hide.map((path) =>
    path.includes('*')
      ? { kind: 'glob' as const, parts: path.split('*') }
      : { kind: 'text' as const, text: path, quoted: true },
  );
  const isHidden = compileMatcher({ kind: 'list', items });
  const anyIsHidden = (paths: Paths) => paths.some(isHidden);
  return withPaths(text, (path, values) =>
    objectText(values.map(([side, value]) => [side, masked([path], value, anyIsHidden) ?? value])),
  );
}

/** The path of a value with array positions, and without them. */
type Paths = readonly string[];

/**
 * The maximum depth, and characters of a path. Anything beyond is masked: imports nest deeper than the call stack, and
 * long paths could exhaust memory.
 */
export const hiddenReach = { levels: 100, path: 10_000 } as const;

/** Undefined if no part of the value is hidden. */
function masked(paths: Paths, value: JsonNode, isHidden: (paths: Paths) => boolean, level = 0): string | undefined {
  const [path = '', short = path] = paths;
  const isBeyond = level > hiddenReach.levels || (level > 0 && path.length > hiddenReach.path);
  if (isBeyond || isHidden(paths)) return maskText;
  switch (kindOf(value)) {
    case 'array': {
      const elements = elementsOf(value);
      const texts = elements.map((element, place) => masked([`${path}.${place}`, short], element, isHidden, level + 1));
      if (texts.every((text) => text === undefined)) return undefined;
      return `[${elements.map((element, place) => texts[place] ?? compactText(element)).join(',')}]`;
    }
    case 'object': {
      const members = entriesOf(value);
      const texts = members.map(([key, member]) => {
        const inPath = key.replaceAll(/[\\.]/g, '\\$&');
        return masked([`${path}.${inPath}`, `${short}.${inPath}`], member, isHidden, level + 1);
      });
      if (texts.every((text) => text === undefined)) return undefined;
      return objectText(members.map(([key, member], place) => [key, texts[place] ?? member]));
    }
    default:
      return undefined;
  }
}

type ChangeToSend = Pick<DeliveredChange, 'type' | 'at' | 'ref' | 'text'>;

/** The body for a change (Standard Webhooks, "Payload structure"). Long bodies are built in a worker thread. */
export const webhookBody = threaded(
  import.meta.url,
  'webhookBody',
  ({ type, at, ref, text }: ChangeToSend, { tenant, hide }: { tenant: string; hide: readonly string[] }): string => {
    const head = `{"type":"change.${type}","timestamp":"${new Date(at).toISOString()}","data":`;
    const item = withHidden(text, hide);
    const body = `${head}${item}}`;
    if (Buffer.byteLength(body) <= maxBodyBytes) return body;
    const entry = `/changelog/${tenant}/entries?ref=${ref}`;
    return `${head}${withoutValues(item, JSON.stringify(entry))}}`;
  },
);

/** Drops the values; if that is not enough, also `paths` and `related`. */
function withoutValues(item: string, entry: string): string {
  const markers: [string, string][] = [
    ['truncated', 'true'],
    ['entry', entry],
  ];
  const members = entriesOf(parseJson(item));
  const bare = objectText([
    ...members.map(([name, value]): [string, JsonNode | string] => [
      name,
      name === 'paths' ? objectText(entriesOf(value).map(([path]) => [path, '{}'])) : value,
    ]),
    ...markers,
  ]);
  if (Buffer.byteLength(bare) <= maxBodyBytes - 1024) return bare;
  const rest = members.filter(([name]) => name !== 'paths' && name !== 'related');
  return objectText([...rest, ['paths', '{}'], ['related', '[]'], ...markers]);
}

/** Rewrites the values of `paths`. */
function withPaths(text: string, rewrite: (path: string, values: ReturnType<typeof entriesOf>) => string): string {
  const item = parseJson(text);
  const paths = memberOf(item, 'paths');
  if (paths === undefined) return text;
  const written = objectText(entriesOf(paths).map(([path, change]) => [path, rewrite(path, entriesOf(change))]));
  return objectText(entriesOf(item).map(([name, value]) => [name, name === 'paths' ? written : value]));
}
