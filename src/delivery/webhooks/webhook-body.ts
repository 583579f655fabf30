import { threaded } from '../../core/concurrency/threaded.ts';
import { entriesOf, memberOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { mask } from '../../core/mask.ts';
import type { DeliveredChange } from '../changes.ts';

/** A longer body is sent without values. */
export const maxBodyBytes = 256 * 1024;

const maskText = JSON.stringify(mask);

/** The item as JSON text with masks in place of the values of hidden paths. `*` in a path stands for any characters. */
export function withHidden(text: string, hide: readonly string[]): string {
  if (hide.length === 0) return text;
  const isHidden = new RegExp(`^(?:${hide.map(expressionOf).join('|')})$`, 's');
  return withPaths(text, (path, values) =>
    isHidden.test(path) ? objectText(values.map(([side]) => [side, maskText])) : undefined,
  );
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

/** Writes the values of some paths anew; undefined leaves them as they are. */
function withPaths(
  text: string,
  rewrite: (path: string, values: ReturnType<typeof entriesOf>) => string | undefined,
): string {
  const item = parseJson(text);
  const paths = memberOf(item, 'paths');
  if (paths === undefined) return text;
  const written = objectText(
    entriesOf(paths).map(([path, change]) => [path, rewrite(path, entriesOf(change)) ?? change]),
  );
  return objectText(entriesOf(item).map(([name, value]) => [name, name === 'paths' ? written : value]));
}

function expressionOf(pattern: string): string {
  return pattern
    .split('*')
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
}
