import type { HistoryEntry } from './query-evaluator.ts';

export interface QueryExample {
  query: string;
  /** The numbers of the entries found, `none`, or `400` and a part of the message. */
  outcome: string;
}

/**
 * The examples of docs/query-language.md: in a block `query` (those with people: `query people`), each on a line, with
 * `=>` and its outcome on the next.
 */
export function examplesOf(document: string, kind: 'query' | 'query people' = 'query'): QueryExample[] {
  const blocks = [...document.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) =>
    block.split('\n'),
  );
  return blocks.flatMap((lines) =>
    lines.flatMap((line, index) =>
      line.startsWith('=> ') ? [{ query: lines[index - 1] ?? '', outcome: line.slice('=> '.length) }] : [],
    ),
  );
}

/** The rows of the document's table of entries, in its order. */
export function entriesOf(document: string): HistoryEntry[] {
  return [...document.matchAll(/^\| \d+ \|(.*)\|$/gm)].map(([, row = '']) => {
    const [at = '', type = '', entity = '', entityId = '', actor = '', related = '', paths = ''] = row
      .split('|')
      .map((cell) => cell.trim());
    return { at: Date.parse(at), type, entity, entityId, actor, related: relatedOf(related), paths: pathsOf(paths) };
  });
}

/** The rows of the table of entries with people, by letter. */
export function peopleOf(document: string): Map<string, HistoryEntry> {
  return new Map(
    [...document.matchAll(/^\| ([A-Z]) \|(.*)\|$/gm)].map(([, letter = '', row = '']) => {
      const [at = '', actor = '', actorId, name, id, correlationId, context = ''] = row
        .split('|')
        .map((cell) => cell.trim() || undefined);
      const about = { type: 'update', entity: 'order', entityId: `ORD-${letter}`, related: [], paths: '{}' };
      const who = {
        actor,
        ...(actorId !== undefined && { actorId }),
        onBehalfOf: { ...(name !== undefined && { name }), ...(id !== undefined && { id }) },
        ...(correlationId !== undefined && { correlationId }),
        ...(context !== '' && { context: context.replaceAll('`', '') }),
      };
      return [letter, { at: Date.parse(at), ...about, ...who }];
    }),
  );
}

/** `status: "OPEN" → "PAID"; price: → 1`: JSON values, and nothing for a side that is absent. */
function pathsOf(cell: string): string {
  const members = [...cell.matchAll(/(?<path>[^;\s]+):(?<before> [^;]*?)? →(?<after> [^;]*)?/g)].map(({ groups }) => {
    const sides = [
      ...(groups?.before ? [`"before":${groups.before}`] : []),
      ...(groups?.after ? [`"after":${groups.after}`] : []),
    ];
    return `${JSON.stringify(groups?.path)}:{${sides.join(',')}}`;
  });
  return `{${members.join(',')}}`;
}

function relatedOf(cell: string): HistoryEntry['related'] {
  return cell
    .split(', ')
    .filter((item) => item !== '')
    .map((item) => {
      const [entity = '', entityId = ''] = item.split(' ');
      return { entity, entityId };
    });
}
