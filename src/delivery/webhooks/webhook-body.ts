import { threaded } from '../../core/concurrency/threaded.ts';
import { elementsOf, entriesOf, kindOf, memberOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { mask } from '../../core/mask.ts';
import { compileMatcher } from '../../query/match.ts';
import type { DeliveredChange } from '../changes.ts';

/** A longer body is sent without values. */
export const maxBodyBytes = 256 * 1024;

const maskText = JSON.stringify(mask);

/**
 * The item as JSON text with masks in place of the values of hidden paths, also inside of whole values. There a path is good with
 * the positions in arrays and without them. `*` stands for any characters, as in queries.
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

/** Of one value: with the positions in arrays, and without them. */
type Paths = readonly string[];

/**
 * How deep a value is looked into, and characters of the paths in it. What is beyond counts as hidden: imports nest deeper than calls can, and
 * the paths of all levels together would take the memory of the process.
 */
export const hiddenReach = { levels: 100, path: 10_000 } as const;

/** Undefined where nothing of the value is hidden. */
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

/** What is sent of a change (Standard Webhooks, "Payload structure"), with every digit. Long ones are written in a worker thread. */
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

/** The paths stay as long as they fit; else they go too, and so does what is related. */
function withoutValues(item: string, entry: string): string {
  const told: [string, string][] = [
    ['truncated', 'true'],
    ['entry', entry],
  ];
  const members = entriesOf(parseJson(item));
  const bare = objectText([
    ...members.map(([name, value]): [string, JsonNode | string] => [
      name,
      name === 'paths' ? objectText(entriesOf(value).map(([path]) => [path, '{}'])) : value,
    ]),
    ...told,
  ]);
  if (Buffer.byteLength(bare) <= maxBodyBytes - 1024) return bare;
  const kept = members.filter(([name]) => name !== 'paths' && name !== 'related');
  return objectText([...kept, ['paths', '{}'], ['related', '[]'], ...told]);
}

/** Writes the values of the paths anew. */
function withPaths(text: string, rewrite: (path: string, values: ReturnType<typeof entriesOf>) => string): string {
  const item = parseJson(text);
  const paths = memberOf(item, 'paths');
  if (paths === undefined) return text;
  const written = objectText(entriesOf(paths).map(([path, change]) => [path, rewrite(path, entriesOf(change))]));
  return objectText(entriesOf(item).map(([name, value]) => [name, name === 'paths' ? written : value]));
}
